"""The package index of this machine's person: its address, its hosts, whom it trusts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_PUBLIC = ("pypi.org:443", "files.pythonhosted.org:443")
_PORTS = {"http": 80, "https": 443}
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True, slots=True)
class Index:
    """Without an address it is the public one. Its hosts are named with their ports: they may also be private."""

    address: str = ""

    @classmethod
    def found(cls, variables: Mapping[str, str] = os.environ) -> "Index":
        """As uv and pip are told: by a variable."""
        return cls(next((variables[name] for name in _VARIABLES if variables.get(name)), ""))

    @property
    def hosts(self) -> frozenset[str]:
        if not self.address:
            return frozenset(_PUBLIC)
        parts = urlsplit(self.address)
        port = parts.port or _PORTS.get(parts.scheme, 443)
        return frozenset({f"{(parts.hostname or '').lower()}:{port}", *_PUBLIC[1:]})

    @property
    def options(self) -> tuple[str, ...]:
        return ("--default-index", self.address) if self.address else ()

    @property
    def trust(self) -> dict[str, str]:
        """The system's own certificates, where they are."""
        return {"SSL_CERT_FILE": str(_CERTIFICATES)} if _CERTIFICATES.exists() else {}
