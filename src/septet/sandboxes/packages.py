"""Third-party packages: which ones a program imports, which distribution has them, and their installation by uv."""

import ast
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from anyio import to_thread
from msgspec.structs import replace

from septet.common.temporary import temporary_folder
from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import MEBIBYTE, Job, Limits, RunResult
from septet.errors import SandboxFailed, SeptetError
from septet.ports import Sandbox
from septet.sandboxes.environment import base_interpreter, make_environment, search_path
from septet.sandboxes.interpreters import (
    ProjectEnvironment,
    add_site_packages,
    project_environment,
    setup_environment,
    site_packages,
)
from septet.sandboxes.network import proxy, relay_command

_SAME_NAMES = """
aiofiles aiohttp altair anthropic anyio arrow astropy attrs babel bcrypt black blinker bokeh boto3 botocore
cachetools certifi cffi chardet click colorama contourpy cryptography cycler dash dask datasets deprecated
dill django docutils duckdb email_validator emoji faker fastapi feedparser filelock flask fsspec gensim
geopandas graphviz greenlet gunicorn h11 h5py holidays html5lib httpcore httpx humanize hypothesis idna
imageio inflect isodate itsdangerous jinja2 jmespath joblib jsonschema keras kiwisolver langdetect librosa
lightgbm litellm llvmlite loguru lxml mako markdown markupsafe marshmallow matplotlib mido mistune
more_itertools moviepy mpmath msgpack msgspec multidict music21 mypy narwhals natsort networkx nltk numba
numexpr numpy oauthlib openai openpyxl orjson packaging pandas paramiko passlib pathspec patsy peewee pendulum
pexpect pint platformdirs playwright plotly pluggy polars pooch pretty_midi prettytable prompt_toolkit psutil
psycopg ptyprocess pyarrow pyasn1 pycparser pydantic pydantic_core pydub pygame pyglet pygments pymongo
pymysql pyparsing pypdf pyperclip pytest pytz pyvis rapidfuzz redis referencing regex reportlab requests rich
rtree scipy seaborn selenium sentence_transformers setuptools shapely six sniffio sortedcontainers
soupsieve spacy sqlalchemy sqlmodel starlette statsmodels streamlit svgwrite sympy tabulate tenacity
tensorflow textual threadpoolctl tiktoken tokenizers tomli tomlkit toolz torch torchvision tornado tqdm
transformers trio typer typing_extensions tzdata tzlocal ujson unidecode urllib3 uvicorn uvloop validators
watchdog wcwidth websockets werkzeug wheel wordcloud wrapt xarray xgboost xlrd xlsxwriter xmltodict yarl
zstandard
"""

_DISTRIBUTION_NAMES = {
    "Bio": "biopython",
    "Crypto": "pycryptodome",
    "Cryptodome": "pycryptodomex",
    "OpenSSL": "pyopenssl",
    "Cython": "cython",
    "PIL": "pillow",
    "PyPDF2": "pypdf2",
    "PyQt5": "pyqt5",
    "PyQt6": "pyqt6",
    "PySide6": "pyside6",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cairosvg": "cairosvg",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "discord": "discord.py",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "fontTools": "fonttools",
    "git": "gitpython",
    "github": "pygithub",
    "grpc": "grpcio",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kivy": "kivy",
    "magic": "python-magic",
    "matplotlib_inline": "matplotlib-inline",
    "midiutil": "midiutil",
    "mpl_toolkits": "matplotlib",
    "mysql": "mysql-connector-python",
    "nacl": "pynacl",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "pymupdf": "pymupdf",
    "rest_framework": "djangorestframework",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "telegram": "python-telegram-bot",
    "tkcalendar": "tkcalendar",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}


def distribution_of(name: str) -> str | None:
    """The distribution that provides an import name; None if that is not certain."""
    if name in _DISTRIBUTION_NAMES:
        return _DISTRIBUTION_NAMES[name]
    return name.replace("_", "-") if name in _SAME_NAMES.split() else None


def third_party_imports(sources: Mapping[str, str], present: Iterable[str] = ()) -> tuple[str, ...]:
    """The top-level third-party names that the sources (path → text) import, sorted.

    `present` are names that are importable already. A source with a syntax error is skipped: running it shows that
    better.
    """
    own = {part for path in sources for part in _module_names(path)}
    known = own | set(present) | sys.stdlib_module_names | {"__main__"}
    return tuple(sorted({name for text in sources.values() for name in _imports_of(text, known)} - known))


def _module_names(path: str) -> Iterable[str]:
    """The names in a path that can be imported, from one working folder or another."""
    parts = PurePosixPath(path).with_suffix("").parts
    return (part for part in parts if part.isidentifier())


def _imports_of(text: str, known: Set[str]) -> Iterable[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node)
        elif isinstance(node, ast.Try):
            nodes += _needed_parts(node, known)
        elif isinstance(node, ast.If) and ast.unparse(node.test) in _TYPES_ONLY:
            nodes += node.orelse
        else:
            nodes += ast.iter_child_nodes(node)


_TYPES_ONLY = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [node.module.partition(".")[0]] if node.module and not node.level else []


def _needed_parts(node: ast.Try, known: Set[str]) -> list[ast.stmt | ast.ExceptHandler]:
    """What of a `try` needs its imports: of an import and what replaces it one is enough."""
    rest = [*node.orelse, *node.finalbody]
    handlers = [one for one in node.handlers if _catches_missing(one)]
    tried = {
        name for one in node.body if isinstance(one, ast.Import | ast.ImportFrom) for name in _imported(one)
    }
    if handlers and tried and tried <= known:
        return [*node.body, *rest]
    if any(map(_goes_on, handlers)):
        return [*node.handlers, *rest]
    return [*node.body, *node.handlers, *rest]


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else ""
    return "ImportError" in caught or "ModuleNotFoundError" in caught


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a program does without a module that is missing: it neither ends nor raises."""
    inner = [node for one in handler.body for node in ast.walk(one)]
    called = [ast.unparse(node.func) for node in inner if isinstance(node, ast.Call)]
    return not (
        any(isinstance(node, ast.Raise) for node in inner) or any(one.endswith("exit") for one in called)
    )


_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_PUBLIC_HOSTS = ("pypi.org:443", "files.pythonhosted.org:443")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True, slots=True)
class Index:
    """A package index, the public one if the address is empty. Hosts include ports, so they may be private."""

    address: str = ""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> "Index":
        """The index in the variables of uv and pip."""
        return cls(next((variables[name] for name in _INDEX_VARIABLES if variables.get(name)), ""))

    @property
    def hosts(self) -> frozenset[str]:
        if not self.address:
            return frozenset(_PUBLIC_HOSTS)
        parts = urlsplit(self.address)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 443)
        return frozenset({f"{(parts.hostname or '').lower()}:{port}", *_PUBLIC_HOSTS[1:]})

    @property
    def options(self) -> tuple[str, ...]:
        return ("--default-index", self.address) if self.address else ()

    @property
    def trust(self) -> dict[str, str]:
        """The system's certificates, if they exist."""
        return {"SSL_CERT_FILE": str(_CERTIFICATES)} if _CERTIFICATES.exists() else {}


def npm_registry(variables: Mapping[str, str] = os.environ) -> Index:
    """npm's registry, by its own variable."""
    names = ("NPM_CONFIG_REGISTRY", "npm_config_registry")
    named = next((variables[name] for name in names if variables.get(name)), "")
    return Index(named or "https://registry.npmjs.org/")


_LIMITS = Limits(
    seconds=600.0, cpu_seconds=600.0, memory=2048 * MEBIBYTE, file_size=4096 * MEBIBYTE, disk=8192 * MEBIBYTE
)
SETUP_CACHE = ".septet-cache"
"""Downloads of a setup, in its folder: memory is too small for them."""
_UNKNOWN = "the index has no distribution of that name with this import"


@dataclass(frozen=True, slots=True)
class PackageInstaller:
    """Installs packages into one environment per workspace, in `folder`; programs can only read theirs."""

    folder: Path
    sandbox: Sandbox
    index: Index
    setup: Path | None = None
    """Where the setup command of the project makes an environment."""

    def prepare(self, job: Job) -> Job:
        """The job with its workspace's interpreter and packages, if it has an environment."""
        home = self._environment_of(job.home or job.workspace)
        if not (home / "bin" / "python").exists():
            return job
        site = Path(site_packages(home)[0])
        (site / "septet.pth").unlink(
            missing_ok=True
        )  # older versions made Septet's own packages importable by it
        return add_site_packages(job, site, home)

    async def find_missing(self, workspace: str, sources: Mapping[str, str]) -> MissingPackages:
        return await to_thread.run_sync(self._find_missing, workspace, dict(sources))

    def _find_missing(self, workspace: str, sources: Mapping[str, str]) -> MissingPackages:
        """Distributions come from our table; only the index knows the other names."""
        project = self._project_environment(workspace)
        paths = [
            *site_packages(self._environment_of(workspace)),
            *(site_packages(project.folder) if project else ()),
        ]
        folders = {
            Path(workspace, "src"),
            *(Path(workspace, one) for path in sources for one in PurePosixPath(path).parents),
        }
        wanted = [
            name
            for name in third_party_imports(sources, present=("pytest", "_pytest"))
            if PathFinder.find_spec(name, paths) is None and not any(_is_local(one, name) for one in folders)
        ]
        known = {name: distribution_of(name) for name in wanted}
        return MissingPackages(
            distributions=tuple(sorted({distribution for distribution in known.values() if distribution})),
            unknown=tuple(name for name, distribution in known.items() if distribution is None),
        )

    async def install(self, workspace: str, missing: MissingPackages) -> Installation:
        started = time.monotonic()
        try:
            installation = await self._install(workspace, missing)
        except SeptetError as error:
            installation = Installation(failed=tuple(sorted(missing.names)), why=str(error))
        return replace(installation, seconds=round(time.monotonic() - started, 3))

    async def _install(self, workspace: str, missing: MissingPackages) -> Installation:
        home = self._environment_of(workspace)
        await to_thread.run_sync(_make_environment, home, self._project_environment(workspace))
        verified = [name for name in missing.unknown if await self._provides(home, name)]
        wanted = (*missing.distributions, *verified)
        unknown = tuple(name for name in missing.unknown if name not in verified)
        if not wanted:
            return Installation(failed=unknown, why=_UNKNOWN)
        result = await self._uv(home, "--python", str(home / "bin" / "python"), *wanted)
        output = result.stdout + result.stderr
        if not result.succeeded:
            return Installation(failed=(*wanted, *unknown), why=_last_line(output), output=output)
        return Installation(installed=wanted, failed=unknown, why=_UNKNOWN if unknown else "", output=output)

    async def _provides(self, home: Path, name: str) -> bool:
        """Whether the index has a distribution of this name that contains the import; none of its code is run."""
        trial = home / ".trial"
        result = await self._uv(home, "--no-deps", "--target", str(trial), name)
        provides = result.succeeded and PathFinder.find_spec(name, [str(trial)]) is not None
        await to_thread.run_sync(lambda: shutil.rmtree(trial, ignore_errors=True))
        return provides

    async def _uv(self, home: Path, *arguments: str) -> RunResult:
        cache = home / ".cache"
        options = ["--only-binary", ":all:", "--link-mode", "copy", "--cache-dir", str(cache)]
        with temporary_folder("proxy") as folder:
            socket = folder / "proxy"
            async with proxy(socket, self.index.hosts):
                program = _uv_program()
                command = (program, "pip", "install", *options, *self.index.options, *arguments)
                job = Job(
                    command=relay_command(socket, "", *command),
                    workspace=str(home),
                    limits=_LIMITS,
                    environment={
                        "UV_OFFLINE": "0",
                        "PIP_NO_INDEX": "0",
                        "UV_NO_CONFIG": "1",
                        **self.index.trust,
                    },
                    readable=(str(folder), program),
                )
                result = await self.sandbox.run(job)
        await to_thread.run_sync(lambda: shutil.rmtree(cache, ignore_errors=True))
        return result

    def setup_job(self, job: Job) -> Job:
        uv, cache = find_uv(), f"{job.place}/{SETUP_CACHE}"
        registry = npm_registry()
        addresses = {"UV_DEFAULT_INDEX": self.index.address, "PIP_INDEX_URL": self.index.address}
        variables = {
            "UV_OFFLINE": "0",
            "PIP_NO_INDEX": "0",
            "UV_PYTHON": str(base_interpreter()),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_CACHE_DIR": f"{cache}/uv",
            "PIP_CACHE_DIR": f"{cache}/pip",
            "npm_config_cache": f"{cache}/npm",
            "npm_config_registry": registry.address,
            **{name: address for name, address in addresses.items() if address},
            **self.index.trust,
        }
        if trusted := self.index.trust.get("SSL_CERT_FILE"):
            variables["NODE_EXTRA_CA_CERTS"] = trusted
        if uv is not None:
            variables["PATH"] = search_path([Path(uv).parent])
        hosts = job.network if isinstance(job.network, tuple) else ()
        return replace(
            job,
            limits=_LIMITS,
            environment=variables,
            readable=(*job.readable, *([uv] if uv else [])),
            network=tuple(sorted({*hosts, *self.index.hosts, *registry.hosts})),
        )

    def _project_environment(self, workspace: str) -> ProjectEnvironment | None:
        made = str(self.setup) if self.setup else ""
        return project_environment(Path(workspace)) or setup_environment(made)

    def _environment_of(self, workspace: str) -> Path:
        real = os.path.realpath(workspace)
        return self.folder / sha256(os.fsencode(real)).hexdigest()[:16]


def _make_environment(home: Path, project: ProjectEnvironment | None) -> None:
    """Create an environment for the project's Python, unless it exists."""
    if (home / "bin" / "python").exists():
        return
    if project is None:
        make_environment(home, base_interpreter())
    else:
        make_environment(home, project.interpreter, project.version)


def _is_local(workspace: Path, name: str) -> bool:
    """Whether the folder has a module of this name."""
    return (workspace / f"{name}.py").exists() or (workspace / name).is_dir()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "the installer gave no reason"


def _uv_program() -> str:
    path = find_uv()
    if path is None:
        raise SandboxFailed("uv is not installed beside Septet", "pip install 'septet[packages]'")
    return path


def find_uv() -> str | None:
    path = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    return os.path.realpath(path) if path else None
