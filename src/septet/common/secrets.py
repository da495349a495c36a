"""Recognises secrets: files by their names, texts by the keys and tokens in them.

These are heuristics and cannot find every secret; files of code are judged by their text alone.
"""

import re

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
MIXED_CHARACTERS = r"(?=[A-Za-z_-]{0,80}\d)(?=[a-z0-9_-]{0,80}[A-Z])[A-Za-z0-9_-]{20,}"
PREFIXED_TOKEN = rf"(?:sk|rk|gsk|xai|nvapi|glpat|pypi|dop_v1|hf|npm)[-_]{MIXED_CHARACTERS}"
PRIVATE_KEY = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:\s|\\[nrt])+[A-Za-z0-9+/=]{8,}"
SECRET_TEXT = re.compile(f"{PRIVATE_KEY}|{WORD_START}(?:{'|'.join([*TOKENS, PREFIXED_TOKEN])})")

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
    \.env (\..+)? | .+\.env | \.envrc
    | .+\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfstate)
    | id_[a-z0-9]+(_sk)?
    | [._]netrc | \.pgpass | \.my\.cnf | \.npmrc | \.pypirc | \.htpasswd | \.git-credentials | \.dockercfg
    | (.+[-_.])?(credential|secret)s? ([-_.].+)?
    | (.+[-_.])?service[-_]?account ([-_.].+)? \.json
    """
)


def is_secret_name(path: str) -> bool:
    """Whether a file of that name usually contains secrets."""
    *folders, name = path.split("/")
    suffix = name.rpartition(".")[2].lower()
    if any(folder in SECRET_FOLDERS for folder in folders):
        return True
    return SENSITIVE_NAME.fullmatch(name) is not None and suffix not in (*EXAMPLE_SUFFIXES, *CODE_SUFFIXES)


def contains_secret(text: str) -> bool:
    """Whether the text contains a private key or an access token."""
    return SECRET_TEXT.search(text) is not None
