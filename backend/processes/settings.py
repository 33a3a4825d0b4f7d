"""The settings of a cluster: the options of `millrace serve`, and the facts that its processes share.

`ClusterSettings` are what the user sets, on the command line, in MILLRACE_* variables or a TOML
file. A `Deployment` is what the processes of one running cluster need to find each other; it
is written to a file only its owner can read, because it holds the cluster's secret.
"""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from controller.derived_keys import derived_key
from controller.passwords import DEFAULT_PLUGIN

DEPLOYMENT_FILE = "run/deployment.json"
SECRET_FILE = "secret"
SECRET_VARIABLE = "MILLRACE_SECRET"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    mysql_port: int = 3307
    host: str = "127.0.0.1"
    data: str = "./millrace-data"
    workers: int = 1
    adapters: int = 1
    controllers: int = 2
    master: str = "local[*]"
    zookeeper: str = "embedded"
    memory_bytes: int = 2 << 30
    statement_memory_bytes: int = 512 << 20
    spark_rows: int = 5_000_000
    durability: str = "fsync"
    http_port: int = 6033
    internal_host: str = "127.0.0.1"
    idle_view_s: float = 600.0
    default_authentication: str = DEFAULT_PLUGIN
    watchdog_s: float = 15.0
    tls_cert: str = ""
    tls_key: str = ""
    log_format: str = "text"

    @property
    def data_path(self) -> Path:
        return Path(self.data).expanduser().resolve()


@dataclass(frozen=True, slots=True)
class Deployment:
    """`process_names` are those that the supervisor starts; `root` is the cluster's znode; `internal_host` is where its processes listen for each other,
    "auto" for the address of whichever machine each runs on.
    """

    data: str
    shard_count: int
    adapter_count: int
    zookeeper: str
    root: str
    secret: str
    host: str
    internal_host: str
    mysql_port: int
    durability: str
    memory_bytes: int
    process_names: tuple[str, ...] = ()
    http_port: int = 0
    master: str = ""
    idle_view_s: float = 600.0
    default_authentication: str = DEFAULT_PLUGIN
    watchdog_s: float = 15.0
    tls_cert: str = ""
    tls_key: str = ""
    statement_memory_bytes: int = 512 << 20
    spark_rows: int = 5_000_000
    log_format: str = "text"
    trace_endpoint: str = ""
    """Where an OTLP receiver listens; empty: no traces."""

    @property
    def data_path(self) -> Path:
        return Path(self.data)

    @property
    def shard_memory_bytes(self) -> int:
        """What each worker may take for computed state: the shards share `--memory` evenly."""
        return self.memory_bytes // self.shard_count

    @property
    def takes_origins(self) -> bool:
        """Whether its processes are told which statement a request belongs to, see `backend.network.origin`."""
        return self.log_format == "json" or bool(self.trace_endpoint)

    @property
    def tls_files(self) -> tuple[Path, Path] | None:
        """The user's certificate and its key."""
        return (Path(self.tls_cert), Path(self.tls_key)) if self.tls_cert else None

    @property
    def http_address(self) -> str:
        return f"{'https' if self.tls_cert else 'http'}://{self.host}:{self.http_port}"

    @property
    def secret_bytes(self) -> bytes:
        return bytes.fromhex(self.secret)

    @property
    def status_token(self) -> str:
        """Who has it is told all of the cluster's status over HTTP, and no more."""
        return status_token(self.secret_bytes)

    def save(self) -> Path:
        path = self.data_path / DEPLOYMENT_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, msgspec.json.encode(asdict(self)))
        return path

    @staticmethod
    def load(path: Path | str) -> Deployment:
        return msgspec.json.decode(Path(path).read_bytes(), type=Deployment)


def trace_endpoint() -> str:
    """Where OpenTelemetry's variables say that traces are sent; empty if nowhere."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return ""
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or (f"{base.rstrip('/')}/v1/traces" if base else "")


def own_address(internal_host: str) -> str:
    """The address at which a process on this machine listens for the others."""
    return socket.gethostbyname(socket.gethostname()) if internal_host == "auto" else internal_host


def cluster_secret(data: Path) -> str:
    """The secret of the cluster that lives in `data`, made when it is new."""
    path = data / SECRET_FILE
    if not path.exists():
        write_private(path, os.urandom(32).hex().encode())
    return path.read_text().strip()


def status_token(secret: bytes) -> str:
    return derived_key(secret, "status over HTTP").hex()


def spark_secret(secret: bytes) -> str:
    """What a standalone Spark cluster has as spark.authenticate.secret, for the cluster with this secret."""
    return derived_key(secret, "Spark").hex()


def write_private(path: Path, content: bytes) -> None:
    """Replace a file, readable by its owner alone, in one step."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def parse_bytes(text: str) -> int:
    """'2G', '512M', '100000' → bytes."""
    text = text.strip().upper().removesuffix("B").removesuffix("I")
    units = {"K": 10, "M": 20, "G": 30, "T": 40}
    if text and text[-1] in units:
        return int(float(text[:-1]) * (1 << units[text[-1]]))
    return int(text)
