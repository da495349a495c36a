"""Which file a fenced block names: in its info string, in its first line, or in the line above it."""

import re
from collections.abc import Iterator, Sequence

from septet.domain.patches import is_patch, patched_path
from septet.domain.values import Value

BARE_NAMES = frozenset(
    """Makefile GNUmakefile Dockerfile Containerfile Jenkinsfile Procfile Vagrantfile Rakefile Gemfile Pipfile
    Brewfile Justfile justfile LICENSE LICENCE COPYING NOTICE AUTHORS CONTRIBUTORS CHANGELOG README INSTALL TODO
    VERSION MANIFEST CODEOWNERS""".split()  # noqa: SIM905  # a list reads worse
)
LANGUAGE_FILES = {"makefile": "Makefile", "dockerfile": "Dockerfile"}
"""What a block is called that has such a language and no name."""
ATTRIBUTE = re.compile(
    r"""(?:file|filename|title|path|name)\s*=\s*(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)'|(?P<plain>[^"'\s}]+))""",
    re.IGNORECASE,
)
QUOTED = re.compile(r"""["'](?P<path>[^"']+)["']""")
BULLET = re.compile(r"^[\s#>-]*(?:[*+]\s+)?(?:\d+[.)]\s*)?")
HEADING = re.compile(
    r"^[*`\"']*(?P<label>file(?:name)?\s*:)?[*`\"'\s]*(?P<path>[^`*\"']+?)\s*:?[`*\"'\s:]*$", re.IGNORECASE
)
COMMENT = re.compile(
    r"^\s*(?:#|//|--|;|<!--|/\*)\s*(?P<label>file(?:name)?\s*:)?\s*(?P<path>\S+?)\s*(?:-->|\*/)?\s*$",
    re.IGNORECASE,
)
COMMON_ENDING = re.compile(
    r"\.(?:py|pyi|js|ts|jsx|tsx|html|css|json|ya?ml|toml|ini|cfg|txt|md|c|h|cpp|hpp|java|go|rs|sh|sql|csv|xml)$"
)
PART = re.compile(r"[\w.@+ \[\]-]*\w[\w.@+\[\]-]*")
VERSION = re.compile(r"v?\d+(?:\.\d+)*")
FILLERS = {"#", "//", "-", "file", "filename"}
FLAGS = frozenset(
    """copy linenums lines showlinenumbers numberlines line-numbers wrap nowrap live editable interactive ignore
    no_run noplayground new updated example test output""".split()  # noqa: SIM905
)
"""Words that follow a language and name no file."""
LANGUAGES = frozenset(
    """python py python3 cython ipython pycon c h cpp c++ hpp java js javascript mjs ts typescript jsx tsx json
    json5 jsonc jsonl yaml yml toml ini cfg conf env properties html htm css scss sass less xml svg vue svelte sql
    sh bash zsh fish shell console terminal powershell ps1 bat cmd text txt plaintext plain output log md markdown
    rst tex latex makefile make cmake dockerfile docker gitignore go golang rust rs ruby rb php perl pl lua r swift
    kotlin kt scala dart haskell hs elixir erlang clojure csharp cs c# fsharp f# vb ocaml zig nim groovy gradle
    julia matlab fortran asm nasm lisp scheme prolog tcl vim csv tsv diff patch proto protobuf graphql nginx jinja
    jinja2 django http mermaid dot tree""".split()  # noqa: SIM905
)


class BlockName(Value):
    """The file that a block names; `unclear` are words that name one, but not which."""

    path: str = ""
    unclear: str = ""


def block_name(info: str, body: Sequence[str], above: str) -> BlockName:
    """The surest place first; empty where none names a file."""
    found = next((name for name in places(info, body, above) if name.path or name.unclear), BlockName())
    return BlockName(path=found.path.removeprefix("./"), unclear=found.unclear)


def places(info: str, body: Sequence[str], above: str) -> Iterator[BlockName]:
    yield in_info(info)
    yield in_body(body)
    yield in_heading(above)
    yield BlockName(path=LANGUAGE_FILES.get(info.strip().lower(), ""))


def language_of(info: str) -> str:
    """The first word, unless that is the file's name; in `{.python}` the first class."""
    words = words_of(info) or [word.lstrip(".") for word in info.strip(" {}").split()]
    return words[0].lower() if words and not is_path(words[0]) else ""


def words_of(info: str) -> list[str]:
    """The words of an info string without attributes in braces."""
    return re.sub(r"\{[^}]*\}|[:{}]", " ", info).split()


def in_info(info: str) -> BlockName:
    if found := ATTRIBUTE.search(info):
        return BlockName(path=found["double"] or found["single"] or found["plain"])
    if (found := QUOTED.search(info)) and is_path(found["path"]):
        return BlockName(path=found["path"])
    words = [word for word in words_of(info) if "=" not in word and word not in FILLERS]
    others = words[1:] if words and words[0].lower() in LANGUAGES else words
    named = [place for place, word in enumerate(others) if is_path(word) or has_folder(word)]
    if named:
        last = named[-1] + 1
        return BlockName(path=others[0]) if named == [0] else BlockName(unclear=" ".join(others[:last]))
    alone = len(words) == 2 and others == words[1:] and others[0].lower() not in FLAGS
    return BlockName(unclear=others[0]) if alone else BlockName()


def in_body(body: Sequence[str]) -> BlockName:
    """A comment, the header of a diff, or a line of its own before a SEARCH/REPLACE block."""
    text = "\n".join(body)
    if is_patch(text):
        return BlockName(path=patched_path(text))
    if body and is_headed_patch(body):
        return BlockName(path=body[0].strip())
    found = COMMENT.match(body[0]) if body else None
    if found and is_path(found["path"]) and (found["label"] or is_common(found["path"])):
        return BlockName(path=found["path"])
    return BlockName()


def is_headed_patch(body: Sequence[str]) -> bool:
    return is_path(body[0].strip()) and is_patch("\n".join(body[1:]))


def in_heading(line: str) -> BlockName:
    """A line with the name and nothing else; one with spaces needs ticks or quotes to be clear."""
    core = BULLET.sub("", line)
    found = HEADING.match(core)
    path = found["path"].strip() if found else ""
    if found is None or not (is_path(path) or found["label"]):
        return BlockName()
    if " " not in path or re.search(r"^[*\s]*[`\"']", core):
        return BlockName(path=path)
    marked = found["label"] or "*" in line or line.lstrip().startswith("#")
    return BlockName(unclear=path) if marked and is_common(path) else BlockName()


def is_common(path: str) -> bool:
    return bool(COMMON_ENDING.search(path))


def is_path(text: str) -> bool:
    """Whether a text reads like a file's path, a bad one included: it is told so, not passed over."""
    if text.startswith(("/", "../", "~/")) or "\\" in text:
        return len(text) > 1 and text != "//"
    parts = text.removeprefix("./").split("/")
    name = parts[-1]
    if not all(PART.fullmatch(part) for part in parts) or VERSION.fullmatch(name):
        return False
    return name in BARE_NAMES or bool(re.search(r"(?:^|.)\.\w[\w-]*$", name))


def has_folder(text: str) -> bool:
    """`bin/start`, whose last part alone would not tell."""
    return "/" in text and all(PART.fullmatch(part) for part in text.split("/"))
