"""Which file a fenced block names: in its info string, in its first line, or in the line above it."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.patches import apply_patch, is_patch, patched_path, replace_definition, split_diff
from septet.domain.plans import Refusal

BARE_NAMES = frozenset(
    """Makefile GNUmakefile Dockerfile Containerfile Jenkinsfile Procfile Vagrantfile Rakefile Gemfile Pipfile
    Brewfile Justfile justfile LICENSE LICENCE COPYING NOTICE AUTHORS CONTRIBUTORS CHANGELOG README INSTALL TODO
    VERSION MANIFEST CODEOWNERS""".split()  # a list reads worse
)
LANGUAGE_FILES = {"makefile": "Makefile", "dockerfile": "Dockerfile"}
"""What a block is called that has such a language and no name."""
ATTRIBUTE = re.compile(
    r"""(?:file|filename|title|path|name)\s*=\s*(?:"(?P<double>[^"]+)"|'(?P<single>[^']+)'|(?P<plain>[^"'\s}]+))""",
    re.IGNORECASE,
)
QUOTED = re.compile(r"""["'](?P<path>[^"']+)["']""")
BULLET = re.compile(r"^[\s#>-]*(?:[*+]\s+)?(?:\*\*(?=\d+[.)]))?(?:\d+[.)]\s*)?")
HEADING = re.compile(
    r"^[*`\"']*(?P<label>file(?:name)?\s*:)?[*`\"'\s]*(?P<path>[^`*\"']+?)\s*:?[`*\"'\s:]*$", re.IGNORECASE
)
MARKED = re.compile(r"`|\*\*|^\s*#|\bfile(?:name)?\s*:", re.IGNORECASE)
COMMENT = re.compile(
    r"^\s*(?:#|//|--|;|<!--|/\*)\s*(?P<label>file(?:name)?\s*:)?\s*(?P<path>\S+?)\s*(?:-->|\*/)?\s*$",
    re.IGNORECASE,
)
COMMON_ENDING = re.compile(
    r"\.(?:py|pyi|js|ts|jsx|tsx|html|css|json|ya?ml|toml|ini|cfg|txt|md|c|h|cpp|hpp|java|go|rs|sh|sql|csv|xml)$"
)
PART = re.compile(r"[\w.@+ \[\]-]*\w[\w.@+\[\]-]*")
SYMBOL = re.compile(r"(?<=\.py)::(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")
"""One definition of a file: `app.py::Shop.total`."""
VERSION = re.compile(r"v?\d+(?:\.\d+)*")
FILLERS = {"#", "//", "-", "file", "filename"}
FLAGS = frozenset(
    """copy linenums lines showlinenumbers numberlines line-numbers wrap nowrap live editable interactive ignore
    no_run noplayground new updated example test output""".split()
)
"""Words that follow a language and name no file."""
LANGUAGES = frozenset(
    """python py python3 cython ipython pycon c h cpp c++ hpp java js javascript mjs ts typescript jsx tsx json
    json5 jsonc jsonl yaml yml toml ini cfg conf env properties html htm css scss sass less xml svg vue svelte sql
    sh bash zsh fish shell console terminal powershell ps1 bat cmd text txt plaintext plain output log md markdown
    rst tex latex makefile make cmake dockerfile docker gitignore go golang rust rs ruby rb php perl pl lua r swift
    kotlin kt scala dart haskell hs elixir erlang clojure csharp cs c# fsharp f# vb ocaml zig nim groovy gradle
    julia matlab fortran asm nasm lisp scheme prolog tcl vim csv tsv diff patch proto protobuf graphql nginx jinja
    jinja2 django http mermaid dot tree""".split()
)


class BlockName(Value):
    """The file that a block names; `unclear` are words that name one, but not which."""

    path: str = ""
    unclear: str = ""


def block_name(info: str, body: Sequence[str], above: str) -> BlockName:
    """The surest place first; empty where none names a file."""
    found = next((name for name in name_places(info, body, above) if name.path or name.unclear), BlockName())
    return BlockName(path=found.path.removeprefix("./"), unclear=found.unclear)


def name_places(info: str, body: Sequence[str], above: str) -> Iterator[BlockName]:
    yield in_info(info)
    yield in_body(body)
    yield in_heading(above)
    yield BlockName(path=LANGUAGE_FILES.get(info.strip().lower(), ""))


def language_of(info: str) -> str:
    """The first word, unless that is the file's name; in `{.python}` the first class."""
    words = info_words(info) or [word.lstrip(".") for word in info.strip(" {}").split()]
    return words[0].lower() if words and not is_path(words[0]) else ""


def info_words(info: str) -> list[str]:
    """The words of an info string without attributes in braces."""
    return re.sub(r"\{[^}]*\}|[:{}]", " ", info).split()


def in_info(info: str) -> BlockName:
    if found := ATTRIBUTE.search(info):
        return BlockName(path=found["double"] or found["single"] or found["plain"])
    if (found := QUOTED.search(info)) and is_path(found["path"]):
        return BlockName(path=found["path"])
    words = [word for word in info_words(info) if "=" not in word and word not in FILLERS]
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


OPENING = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*$")
INNER_INDENT = 3
PYTHON = {"python", "py", "python3", ""}
NOT_FILES = frozenset(
    """bash sh shell zsh fish console terminal shell-session shellsession powershell cmd bat text txt plaintext
    plain output log pycon python-repl pytb traceback tree mermaid""".split()  # a list reads worse
)
"""Languages of blocks that tell the reader something, unless they name a file."""
FENCE = "```"
MOST_CLOSINGS = 8
PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc")
"""Files that may hold blocks of code."""


class Block(Value):
    """A fenced block as it stands in a reply: its language, the file it names (or none) and its text.

    `unclear` are words that name a file, but not which; `symbol` is the definition of the file that it replaces.
    """

    language: str
    path: str
    text: str
    unclear: str = ""
    symbol: str = ""


class CodeFile(Value):
    path: str
    text: str


class Trouble(Value):
    """Why a block cannot be used, and the file that it names."""

    reason: str
    path: str = ""


class ReplyFiles(Value):
    """What the blocks of a reply come to: files, whole, and what is wrong with the others."""

    files: tuple[CodeFile, ...] = ()
    troubles: tuple[Trouble, ...] = ()


NO_CODE = "no code block; put each file in a block that starts with ```python NAME.py"
NAMING = 'start the block with ```python NAME.py, or ```python file="MY NAME.py" if it has spaces'


def code_files(
    reply: str, only: str = "", before: Mapping[str, str] | None = None
) -> tuple[CodeFile, ...] | Refusal:
    """The files of a reply, whole. `only` names the file that a single unnamed block stands for.

    `before` are the files that there are, by path: a diff or a SEARCH/REPLACE block changes one of them.
    """
    read = read_files(reply, only, before)
    reasons = [trouble.reason for trouble in read.troubles] or ([] if read.files else [NO_CODE])
    return Refusal(reason="\n".join(reasons)) if reasons else read.files


def read_files(reply: str, only: str = "", before: Mapping[str, str] | None = None) -> ReplyFiles:
    """The files of a reply, and what is wrong with each block that is none: every block is in one of them."""
    blocks, troubles = split_blocks(reply)
    troubles += [
        Trouble(reason=f"'{block.unclear}' does not say which file is meant; {NAMING}")
        for block in blocks
        if block.unclear
    ]
    blocks = [block for block in blocks if not block.unclear]
    named = [part for block in blocks if block.path for part in split_block(block)]
    unnamed = unnamed_code(blocks)
    if not named and not troubles and len(unnamed) == 1 and only and unnamed[0].language in PYTHON:
        named, unnamed = [replace(unnamed[0], path=only)], []
    if unnamed:
        troubles.append(Trouble(reason=without_name(unnamed).reason))
    return unread(reply.splitlines(), whole_files(named, before or {}, troubles))


def named_blocks(reply: str) -> list[Block]:
    """The blocks that name a file, and of diffs of several files a block for each."""
    return [part for block in split_blocks(reply)[0] if block.path for part in split_block(block)]


def split_block(block: Block) -> list[Block]:
    """A diff of several files as one block for each."""
    if not is_change(block) or block.symbol:
        return [block]
    return [replace(block, path=path or block.path, text=text) for path, text in split_diff(block.text)]


def unnamed_code(blocks: Sequence[Block]) -> list[Block]:
    """Blocks that must be files and do not say which; a bare one beside others may be what a program prints."""
    nameless = [
        block
        for block in blocks
        if not block.path and (block.language not in NOT_FILES or holds_blocks(block.text))
    ]
    code = [one for one in nameless if one.language or is_program(one.text) or holds_blocks(one.text)]
    return code if code or any(block.path for block in blocks) else nameless


def holds_blocks(text: str) -> bool:
    return any(OPENING.match(line) for line in text.splitlines())


def without_name(blocks: Sequence[Block]) -> Refusal:
    firsts = [next((line.strip() for line in one.text.splitlines() if line.strip()), "") for one in blocks]
    first = ", ".join(f"'{line}'" for line in firsts)
    if any(is_change(block) for block in blocks):
        return Refusal(reason=f"a diff names no file ({first}); start each with ```diff NAME.py")
    count = pluralize(len(blocks), "code block")
    return Refusal(
        reason=f"{count} without a file name ({first}); start each with ```python NAME.py, or leave it out"
    )


def whole_files(
    blocks: Sequence[Block], before: Mapping[str, str], troubles: Sequence[Trouble]
) -> ReplyFiles:
    """The text of each file after the reply: sent once and whole, or changed, perhaps several times."""
    texts: dict[str, str] = {}
    found = list(troubles)
    whole: set[str] = set()
    for block in blocks:
        path, change = block.path, is_change(block)
        text = text_after(block, texts.get(path, before.get(path)))
        if path in texts and (path in whole or not change):
            found.append(Trouble(reason=f"'{path}' comes twice; send each file once, whole", path=path))
        if isinstance(text, Refusal):
            found.append(Trouble(reason=text.reason, path="" if is_outside(path) else path))
        else:
            texts[path] = text
        whole |= set[str]() if change else {path}
    bad = {trouble.path for trouble in found}
    files = tuple(CodeFile(path=path, text=text) for path, text in texts.items() if path not in bad)
    return ReplyFiles(files=files, troubles=tuple(found))


def text_after(block: Block, before: str | None) -> str | Refusal:
    """What the block makes of its file."""
    path = block.path
    if is_outside(path):
        return Refusal(reason=f"'{path}' is not a path inside the workspace")
    if block.symbol:
        return replace_definition(path, before, block.symbol, block.text)
    text = apply_patch(path, before, block.text) if is_change(block) else block.text
    if isinstance(text, Refusal):
        return text
    if not text.strip() and not path.endswith("__init__.py"):
        return Refusal(reason=f"'{path}' is empty; send each file whole")
    if inner := swallowed_block(block):
        return Refusal(reason=f"'{path}' holds the block '{inner}'; close each block with a line of its own")
    return text


def swallowed_block(block: Block) -> str:
    """The beginning of another file inside a block that was not closed; prose and texts in a program may have some."""
    if block.path.endswith(PROSE) or is_change(block) or parse_python(block.text) is not None:
        return ""
    return next(beginnings([*block.text.rstrip().split("\n"), FENCE]), "")


def beginnings(lines: Sequence[str]) -> Iterator[str]:
    """Lines that name the file of a block: its fence, or the heading above it."""
    above = ""
    for line in filter(str.strip, lines):
        opening = OPENING.match(line)
        if opening and has_file_name(block_name(opening["info"], (), "")):
            yield line.strip()
        elif opening and MARKED.search(above) and has_file_name(in_heading(above)):
            yield above.strip()
        above = line


def has_file_name(name: BlockName) -> bool:
    return bool(name.path or name.unclear)


def unread(lines: Sequence[str], read: ReplyFiles) -> ReplyFiles:
    """What was read of a reply, and each beginning of a file in it that nothing was said of yet."""
    said = "\n".join([*(trouble.reason for trouble in read.troubles), *(file.path for file in read.files)])
    plain = {line: SYMBOL.sub("", line) for line in beginnings(lines)}
    found = {line: block_name(words.strip("`~ "), (), words).path for line, words in plain.items()}
    lost = [line for line, path in found.items() if (path or line) not in said]
    reason = f"{', '.join(lost)}: not read, for a block before it has no end of its own"
    return (
        replace(read, troubles=(*read.troubles, Trouble(reason=reason))) if lost and read.troubles else read
    )


def is_change(block: Block) -> bool:
    if block.symbol:
        return True
    if block.path.endswith((".diff", ".patch")):
        return False
    return block.language == "diff" or is_patch(block.text)


def is_outside(path: str) -> bool:
    parts = path.split("/")
    return path.startswith(("/", "~")) or ".." in parts or "" in parts or "\\" in path or ":" in path


def code_blocks(reply: str) -> list[Block] | Refusal:
    """All fenced blocks, by CommonMark's rules; a fence with an info string inside a block nests."""
    blocks, troubles = split_blocks(reply)
    return Refusal(reason=troubles[0].reason) if troubles else blocks


def split_blocks(reply: str) -> tuple[list[Block], list[Trouble]]:
    """The fenced blocks, and the one that is never closed."""
    lines = reply.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks: list[Block] = []
    number = 0
    while number < len(lines):
        opening = OPENING.match(lines[number])
        if opening is None:
            number += 1
            continue
        ends = closings(lines, number, opening)
        above = next((line for line in reversed(lines[:number]) if line.strip()), "")
        if not ends:
            return blocks, [never_closed(lines[number:], opening, above)]
        body = [without_indent(line, opening["indent"]) for line in lines[number + 1 : ends[-1]]]
        sizes = [end - number - 1 for end in ends]
        code = sizes if "py" in opening["info"].lower() or not opening["info"] else []
        size = next((size for size in code if parse_python("\n".join(body[:size])) is not None), sizes[0])
        blocks.append(read_block(opening["info"], body[:size], above))
        number += size + 2
    return blocks, []


def never_closed(lines: Sequence[str], opening: re.Match[str], above: str) -> Trouble:
    path = read_block(opening["info"], list(lines[1:]), above).path
    return Trouble(
        reason=f"the code block that starts with '{lines[0].strip()}' is never closed",
        path="" if is_outside(path) else path,
    )


def without_indent(line: str, indent: str) -> str:
    """The line without the indentation of its fence, as far as it has that."""
    if line.startswith(indent):
        return line[len(indent) :]
    return line[min(len(indent), len(line) - len(line.lstrip(" "))) :]


def closings(lines: list[str], start: int, opening: re.Match[str]) -> list[int]:
    """Lines that may close the fence opened at `start`: the first does, unless it stands inside a string."""
    fence, deepest = opening["fence"], len(opening["indent"]) + INNER_INDENT
    depth = 0
    found: list[int] = []
    for number in range(start + 1, len(lines)):
        inner = OPENING.match(lines[number])
        if inner is None or inner["fence"][0] != fence[0] or len(inner["fence"]) < len(fence):
            continue
        if len(inner["indent"]) > deepest:
            continue
        if inner["info"]:
            depth += 1
        elif depth > 0:
            depth -= 1
        elif len(found) < MOST_CLOSINGS:
            found.append(number)
    return found


def parse_python(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_program(source: str) -> bool:
    """Python that does more than to name values, which is what programs print."""
    tree = parse_python(source)
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


def read_block(info: str, body: list[str], above: str) -> Block:
    symbol = SYMBOL.search(info) or SYMBOL.search(above)
    name = block_name(SYMBOL.sub("", info), body, SYMBOL.sub("", above))
    lines = body[1:] if body and is_headed_patch(body) else body
    text = "\n".join(lines).rstrip() + "\n"
    own = symbol["name"] if symbol and name.path else ""
    return Block(language=language_of(info), path=name.path, text=text, unclear=name.unclear, symbol=own)
