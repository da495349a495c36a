"""What looks like a secret: files by their names, texts by the keys and tokens that stand in them.

It goes by looks and cannot know every secret; code is judged by its text alone.
"""

import re

WORD_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""Not in the middle of a word; an escaped line end, as JSON within a text has it, is no part of one."""
TOKENS = (
    r"gh[a-z]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w.-]{20,}",
    r"xox[a-z]-[\w-]{10,}",
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
)
"""Shapes that nothing else has."""
MIXED = r"(?=[A-Za-z_-]{0,80}\d)(?=[a-z0-9_-]{0,80}[A-Z])[A-Za-z0-9_-]{20,}"
LIKELY = rf"(?:sk|rk|gsk|xai|nvapi|glpat|pypi|dop_v1|hf|npm)[-_]{MIXED}"
PRIVATE_KEY = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:\s|\\[nrt])+[A-Za-z0-9+/=]{8,}"
SECRET_TEXT = re.compile(f"{PRIVATE_KEY}|{WORD_START}(?:{'|'.join([*TOKENS, LIKELY])})")

EXAMPLE_ENDINGS = ("example", "sample", "template", "dist", "defaults")
"""Ends of names of files that show how such a file looks."""
CODE_ENDINGS = (
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
    """Whether a file of that name usually holds something that nobody else should see."""
    *folders, name = path.split("/")
    ending = name.rpartition(".")[2].lower()
    if any(folder in SECRET_FOLDERS for folder in folders):
        return True
    return SENSITIVE_NAME.fullmatch(name) is not None and ending not in (*EXAMPLE_ENDINGS, *CODE_ENDINGS)


def holds_secret(text: str) -> bool:
    """Whether a private key or an access token plainly stands in it."""
    return SECRET_TEXT.search(text) is not None
