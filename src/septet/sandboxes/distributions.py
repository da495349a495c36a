"""Import name → distribution, by a kept map. A name that is not here is never guessed."""

_SAME_NAME = """
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

_OTHER_NAME = {
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
    """The distribution that provides an import name, or None where that is not known for certain."""
    if name in _OTHER_NAME:
        return _OTHER_NAME[name]
    return name.replace("_", "-") if name in _SAME_NAME.split() else None
