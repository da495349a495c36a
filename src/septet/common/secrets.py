"""Recognises secrets: files by their names, texts by the keys and tokens in them.

A text is searched with a few patterns of our own, then with the rules of Kingfisher (the extra `secrets`) if it is
installed. Both read it in this process and send nothing. These are heuristics and cannot find every secret; files of
code are judged by their text alone.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

WORD_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""Not in the middle of a word; an escaped line end (`\\n`), as in JSON, does not count as part of one."""
TOKENS = (
    r"gh[a-z]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w.-]{20,}",
    r"xox[a-z]-[\w-]{10,}",
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
)
"""Shapes that only tokens have."""
AMAZON_KEY = (
    r"(?i:aws[_-]?secret(?:[_-]?access)?[_-]?key[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
    r"(?=[A-Za-z/+]{0,39}\d)(?=[a-z0-9/+]{0,39}[A-Z])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
)
"""It has no shape of its own, but people name it the same everywhere."""
PREFIXES = ("sk", "rk", "gsk", "xai", "nvapi", "glpat", "pypi", "dop_v1", "hf", "npm")
MIXED_CHARACTERS = r"(?=[A-Za-z_-]{0,80}\d)(?=[a-z0-9_-]{0,80}[A-Z])[A-Za-z0-9_-]{20,}"
PREFIXED_TOKEN = rf"(?:{'|'.join(PREFIXES)})[-_]{MIXED_CHARACTERS}"
PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:\s|\\[nrt])*(?:\n|\\n)[A-Za-z-]{3,20}: [^\n\\]{0,200})*(?:\s|\\[nrt])+[A-Za-z0-9+/=]{8,}"
    r"(?:(?:\s|\\[nrt])+[A-Za-z0-9+/=]+)*"
    r"(?:(?:\s|\\[nrt])*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
SECRET_TEXT = re.compile(
    f"(?P<key>{PRIVATE_KEY})|{WORD_START}(?:{'|'.join([*TOKENS, AMAZON_KEY, PREFIXED_TOKEN])})"
)
MARKS = (
    *("PRIVATE KEY", "AKIA", "ASIA", "AIza", "ya29.", "xox", "eyJ", "github_pat_"),
    *(f"gh{letter}_" for letter in "abcdefghijklmnopqrstuvwxyz"),
    *(f"{prefix}{sign}" for prefix in PREFIXES for sign in "-_"),
    *("aws_secret", "AWS_SECRET", "aws-secret", "awsSecret", "AwsSecret"),
)
"""A text without any of these matches none of our patterns; looking for them is 20 times as fast."""
SUSPICIOUS = re.compile(
    r"(?i)passw|pwd|secret|token|key|auth|cred|bearer|://\S*@|(?=[a-z_+/=-]{0,60}\d)[a-z0-9_+/=-]{16,}"
)
"""Kingfisher is loaded (0.3 s, 40 MB) with the first text that has one of these."""
SHORTEST_VALUE, LONGEST_FILE = 8, 64 << 10
VALUE = re.compile(rf"[^\s'\"=:,;{{}}()\[\]<>]{{{SHORTEST_VALUE},}}")
"""A word of a secret file that may be the secret itself."""
MASK = "[secret: {}]"

EXAMPLE_SUFFIXES = ("example", "sample", "template", "dist", "defaults")
"""Suffixes of files that show the form of such a file."""
CODE_SUFFIXES = (
    "py",
    "pyi",
    "js",
    "ts",
    "jsx",
    "tsx",
    "go",
    "rs",
    "java",
    "rb",
    "c",
    "h",
    "cpp",
    "sh",
    "md",
    "html",
)
SECRET_FOLDERS = frozenset({".ssh", ".aws", ".azure", ".gnupg", ".kube"})
SENSITIVE_NAME = re.compile(
    r"""(?ix)
    \#? (
    \.env (\..+)? | .+\.env | \.envrc
    | .+\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn|tfstate|tfvars)
    | id_[a-z0-9]+(_sk)?
    | [._]netrc | \.pgpass | \.my\.cnf | \.npmrc | \.pypirc | \.htpasswd | \.git-credentials | \.dockercfg
    | \.boto | \.s3cfg | \.?vault[-_]pass(word)? (\.txt)? | kubeconfig
    | (.+[-_.])?(credential|secret)s? ([-_.].+)?
    | (.+[-_.])?passwords? \.(txt|csv|json|ya?ml|toml|ini)
    | (.+[-_.])?service[-_]?account ([-_.].+)? \.json
    ) (~ | \# | \.(bak|backup|old|orig|save|swp))?
    """
)
"""Copies that editors and people make count too."""


def is_secret_name(path: str) -> bool:
    """Whether a file of that name usually contains secrets."""
    *folders, name = path.split("/")
    suffix = name.rpartition(".")[2].lower()
    if any(folder in SECRET_FOLDERS for folder in folders) or path.endswith(".docker/config.json"):
        return True
    return SENSITIVE_NAME.fullmatch(name) is not None and suffix not in (*EXAMPLE_SUFFIXES, *CODE_SUFFIXES)


class FoundSecret(NamedTuple):
    """A secret in a text, and what kind it is."""

    kind: str
    text: str


def has_token(name: str) -> bool:
    """Whether the name of a file is itself a token."""
    return any(mark in name for mark in MARKS) and SECRET_TEXT.search(name) is not None


def secret_kind(text: str, path: str = "") -> str:
    """The kind of the first secret in the text; empty if there is none. The path tells tests from other files."""
    return next((found.kind for found in find_secrets(text, path)), "")


def find_secrets(text: str, path: str = "") -> Iterator[FoundSecret]:
    if any(mark in text for mark in MARKS):
        for match in SECRET_TEXT.finditer(text):
            yield FoundSecret("private key" if match["key"] else "access token", match[0])
    if not has_scanner() or not (scanner.cache_info().currsize or SUSPICIOUS.search(text)):
        return
    from kingfisher_sdk import ScanInput

    for found in scanner().scan_input(ScanInput(path=path, data=text.encode(errors="replace"))):
        if found.visible and found.confidence != "low":
            yield FoundSecret(found.rule_id.rpartition(".")[2].replace("-", " "), found.secret)


@lru_cache(maxsize=1)
def has_scanner() -> bool:
    """Whether Kingfisher is installed."""
    return find_spec("kingfisher_sdk") is not None


@lru_cache(maxsize=1)
def scanner() -> "Scanner":
    """Its rules are compiled once on a machine (3 s), and then read from a cache of its own."""
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules(confidence="medium"))


def values_of(content: bytes) -> set[str]:
    """The words of a secret file that are long and mixed enough to be recognised elsewhere."""
    words = VALUE.findall(content[:LONGEST_FILE].decode(errors="ignore"))
    return {
        word for word in words if len(word) >= 20 or (re.search(r"\d", word) and re.search(r"[A-Za-z]", word))
    }


def mask_secrets(text: str, values: Iterable[str] = (), known: str = "") -> str:
    """The text with what looks like a secret, and the given values, replaced, except what the `known` text has."""
    for value in sorted(values, key=len, reverse=True):
        if value not in known:
            text = text.replace(value, MASK.format("of a file that is not shown"))
    for found in list(find_secrets(text)):
        if found.text.strip() and found.text not in known:
            text = text.replace(found.text, MASK.format(found.kind))
    return text
