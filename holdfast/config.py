"""How a node is set: one YAML file, environment variables and flags, declared once.

A flag wins over the environment, that over the file, that over the default.  All mistakes are
reported at once, with the nearest good name.  Without any setting, a master and a worker on one
machine find each other through Holdfast's home folder.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import OptionInfo, describe, option, options, read_options
from holdfast.errors import SourceLocation, UserError
from holdfast.files import state_dir
from holdfast.master.ports import MasterSettings
from holdfast.master_urls import url_problem
from holdfast.model.secret import MASK, Secret
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.formats.yaml_file import parse_yaml
from holdfast.plan.masking import masked_text
from holdfast.plan.syntax import Unreadable

PREFIX = "HOLDFAST_"
LISTEN = "127.0.0.1:5801"
TIDY_S = 60.0
"""How often a leader writes down how long it has led: what saved states are kept by."""


@options
class OpenLineage:
    """Where run events of jobs are sent to."""

    #: The whole URL, e.g. http://marquez:5000/api/v1/lineage.
    url: str
    #: Sent as a bearer token.
    api_key: Secret | None = None
    #: The namespace of the jobs.
    namespace: str = "holdfast"
    #: How often a running job may say so.
    running_s: float = option(60.0, at_least=1.0)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Say what no option shows alone."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            yield "url", "openlineage.url must be a URL such as http://host:5000/api/v1/lineage."
        if parts.username or parts.password:
            yield "url", "openlineage.url must not hold a password; give api_key."


@options
class Config:
    """Every option of a node."""

    #: This process's name in logs and answers; the machine's name and the process id by default.
    name: str = ""
    #: Where control state is kept, e.g. sqlite:/var/lib/holdfast/store.db or etcd:http://host:2379.
    store: str = ""
    #: Where checkpoints are kept: a folder, s3://bucket/path?endpoint=..., or Arrow's other URIs.
    blobs: str = ""
    #: The address a master answers on.
    listen: str = LISTEN
    #: The URL at which clients and workers reach this master; from `listen` by default.
    advertise: str = ""
    #: The URLs of all masters, for workers and clients.
    masters: list[str] = option([])
    #: The secret that masters and their admins share; better kept in token_file.
    token: Secret | None = None
    #: The file that holds the token; created at the first start where it is the default one.
    token_file: str = ""
    #: The secret with which workers join; derived from the token where it is not given.
    join_token: Secret | None = None
    #: The file that holds the join token, for workers that must not have the masters' token.
    join_token_file: str = ""
    #: The file with what seals job files in the store, a line each: the first for new ones, all of
    #: them for old ones; the token where it is not given.
    seal_key_file: str = ""
    #: The PEM file of a master's certificate; with it, the master answers over TLS alone.
    tls_cert: str = ""
    #: The PEM file of that certificate's key.
    tls_key: str = ""
    #: The PEM file of authorities: masters let in only clients and workers with their certificates.
    tls_client_ca: str = ""
    #: The PEM file of the authorities that workers and clients trust; the machine's own by default.
    tls_ca: str = ""
    #: The PEM file of the certificate that a worker or client shows.
    tls_client_cert: str = ""
    #: The PEM file of that certificate's key.
    tls_client_key: str = ""
    #: Let a master listen on a public address without TLS, in a private network.
    insecure: bool = False
    #: A path under which SeaTunnel's REST paths are answered too, as its http.context-path.
    context_path: str = ""
    #: The masters' environment variables that job texts sent to them may use as ${NAME}.
    job_environment: list[str] = option([])
    #: The folders that jobs may read and write, as the masters see them; any by default.
    file_roots: list[str] = option([])
    #: How many parallel readers a worker runs at once; 0: twice its cores, at least 8.
    slots: int = option(0, at_least=0)
    #: How many cores a worker's local Spark uses; 0: all.
    cores: int = option(0, at_least=0)
    #: What a worker is marked with, for jobs with a tag_filter.
    tags: dict[str, str] = option({})
    #: Spark's settings for a worker, e.g. spark.master and spark.executor.memory.
    spark: dict[str, str] = option({})
    #: Connectors to load from .py files or modules, in addition to the installed ones.
    plugins: list[str] = option([])
    #: Let jobs run Python functions that their files name.
    allow_python: bool = False
    #: What to do with a job that is larger than the cluster: it waits for more workers, or its
    #: submit is refused.
    too_large: Literal["wait", "refuse"] = "wait"
    #: How long a leader may be silent before another master takes over.
    lease_s: float = option(3.0, at_least=0.5)
    #: How often a standby looks whether a master leads.
    campaign_s: float = option(0.2, at_least=0.05)
    #: How often a stream's checkpoint is due where its job file does not say.
    interval_s: float = option(10.0, at_least=0.1)
    #: How long a checkpoint may take where the job file does not say.
    timeout_s: float = option(60.0, at_least=0.1)
    #: How long a worker may be silent before its tasks run on other workers.
    worker_lost_s: float = option(10.0, at_least=1.0)
    #: How long a task may make no progress before it is started again.
    progress_s: float = option(300.0, at_least=1.0)
    #: How long the id of an ended job stays taken.
    tombstone_s: float = option(60.0, at_least=0.0)
    #: How long a worker keeps its tasks without a message from a leader.
    orphan_s: float = option(60.0, at_least=1.0)
    #: How often a worker says that it is there.
    beat_s: float = option(0.5, at_least=0.05)
    #: How long Spark may take to start before its worker restarts.
    spark_start_s: float = option(300.0, at_least=1.0)
    #: How long Spark's Java process may not answer before its worker restarts.
    spark_silent_s: float = option(60.0, at_least=5.0)
    #: How long a worker that is stopped waits for its tasks to move to other workers.
    leave_s: float = option(25.0, at_least=0.0)
    #: How many ended jobs are remembered.
    history: int = option(1000, at_least=1)
    #: The folder for logs.
    logs: str = ""
    #: The hosts that jobs may have masters post reports to (http-report), each with a port or not.
    report_hosts: list[str] = option([])
    #: Where the leader sends OpenLineage run events: url, api_key, namespace, running_s.
    openlineage: OpenLineage | None = None

    def settings(self) -> MasterSettings:
        """Return how patient a master of this config is."""
        return MasterSettings(
            lease_s=self.lease_s,
            campaign_s=self.campaign_s,
            worker_lost_s=self.worker_lost_s,
            progress_s=self.progress_s,
            interval_s=self.interval_s,
            timeout_s=self.timeout_s,
            tombstone_s=self.tombstone_s,
            history=self.history,
            tidy_s=TIDY_S,
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        """Say what no option shows alone."""
        if _address(self.listen) is None:
            yield "listen", f"listen must be HOST:PORT, not '{self.listen}'."
        if bool(self.tls_cert) != bool(self.tls_key):
            yield "tls_cert", "tls_cert and tls_key belong together: give both or none."
        if self.tls_client_ca and not self.tls_cert:
            yield (
                "tls_client_ca",
                "tls_client_ca needs tls_cert: without TLS no client shows a certificate.",
            )
        for url in self.masters:
            if (wrong := url_problem(url)) is not None:
                said = f"masters must be URLs such as http://{LISTEN}, not '{url}'{wrong}."
                yield "masters", said


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """A config with nothing left open, and where each value came from."""

    config: Config
    origins: Mapping[str, str]

    def shown(self) -> str:
        """Return it as YAML, without secrets, with the origin of each value."""
        lines = []
        for info in describe(Config):
            value = _yaml(getattr(self.config, info.name), info.name)
            lines.append(f"{info.key}: {value}  # {self.origins[info.name]}")
        return "\n".join(lines)


def flag(info: OptionInfo) -> str:
    """Return an option's flag."""
    return "--" + info.name.replace("_", "-")


def load_config(
    flags: Mapping[str, str], environ: Mapping[str, str], file: str | None = None
) -> EffectiveConfig:
    """Read a config from all its places.  Raises every mistake together."""
    report = CheckReport()
    named = file or environ.get(PREFIX + "CONFIG")
    layers = [_file(Path(named), report) if named else {}, _environment(environ), _flags(flags)]
    entries: dict[str, Entry] = {}
    origins = {info.name: "default" for info in describe(Config)}
    for layer, origin in zip(layers, (str(named), "environment", "flag"), strict=True):
        for key, entry in layer.items():
            entries[key] = entry
            origins[key] = origin
    block = Block(tuple(entries.values()), SourceLocation("configuration", 1, 1))
    config = read_options(Config, block, "config", report)
    if report.mistakes or config is None:
        raise UserError(
            "\n".join(_placed(m.place, m.message) for m in report.mistakes), code="config"
        )
    names = {f.name for f in fields(Config)}
    return EffectiveConfig(_completed(config), {k: v for k, v in origins.items() if k in names})


def host_and_port(config: Config) -> tuple[str, int]:
    """Return what a master listens on."""
    found = _address(config.listen)
    assert found is not None
    return found


def cluster_folder() -> Path:
    """Return where a master and a worker of one machine find each other."""
    return state_dir.root() / "cluster"


def _completed(config: Config) -> Config:
    """Fill in the defaults that depend on this machine."""
    folder = cluster_folder()
    cores = config.cores or os.cpu_count() or 1
    scheme = "https" if config.tls_cert or config.tls_ca else "http"
    host, port = _address(config.listen) or ("", 0)
    reached = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    return replace(
        config,
        name=config.name or f"{socket.gethostname()}-{os.getpid()}",
        store=config.store or f"sqlite:{folder / 'store.db'}",
        blobs=config.blobs or str(folder / "blobs"),
        advertise=config.advertise or f"{scheme}://{_bracketed(reached)}:{port}",
        masters=config.masters or [f"{scheme}://{LISTEN}"],
        token_file=config.token_file or str(folder / "token"),
        slots=config.slots or max(8, 2 * cores),
        logs=config.logs or str(state_dir.root() / "logs"),
    )  # fmt: skip


def _file(path: Path, report: CheckReport) -> dict[str, Entry]:
    try:
        text = path.read_text()
    except OSError as error:
        raise UserError(f"The config file {path} cannot be read: {error.strerror}.") from error
    if all(line.startswith("#") for line in text.split("\n") if line.strip()):
        return {}
    try:
        tree = parse_yaml(text, str(path))
    except Unreadable as stopped:
        report.mistakes.append(stopped.mistake)
        return {}
    return {e.key: e for e in _joined(tree)}


def _joined(tree: Block) -> Iterator[Entry]:
    """Yield the entries, `spark.x: y` at the top put into the block `spark`."""
    spark = [e for e in tree.entries if e.key.startswith("spark.")]
    block = tree.find("spark")
    inner = block.node.entries if block and isinstance(block.node, Block) else ()
    yield from (e for e in tree.entries if e not in spark and e is not block)
    if block and not isinstance(block.node, Block):
        yield block
    elif spark or block:
        place = block.place if block else spark[0].place
        yield Entry("spark", Block((*inner, *spark), place), place)


def _environment(environ: Mapping[str, str]) -> dict[str, Entry]:
    """Read HOLDFAST_...; other variables of that prefix belong to other parts."""
    given = {i.name: environ.get(PREFIX + i.name.upper(), "") for i in describe(Config)}
    return {k: _entry(k, v, f"{PREFIX}{k.upper()}") for k, v in given.items() if v}


def _flags(flags: Mapping[str, str]) -> dict[str, Entry]:
    return {k: _entry(k, v, "--" + k.replace("_", "-")) for k, v in flags.items()}


def _entry(name: str, text: str, origin: str) -> Entry:
    """Return a text as the option's kind asks: a list by commas, a block by k=v,k=v."""
    place = SourceLocation(origin, 0, 0)
    kind = next(i.kind for i in describe(Config) if i.name == name)
    node: Node = Scalar(text, text, place)
    if kind.startswith("list"):
        parts = [p.strip() for p in text.split(",") if p.strip()]
        node = Items(tuple(Scalar(p, p, place) for p in parts), place)
    elif kind.startswith("block"):
        pairs = [p.strip().partition("=") for p in text.split(",") if p.strip()]
        node = Block(tuple(Entry(k, Scalar(v, v, place), place) for k, _, v in pairs), place)
    return Entry(name, node, place)


def _placed(place: SourceLocation, message: str) -> str:
    message = message.removeprefix("config: ")
    return f"{place}: {message}" if place.line else f"{place.file}: {message}"


def _address(text: str) -> tuple[str, int] | None:
    host, colon, port = text.rpartition(":")
    return (host.strip("[]"), int(port)) if colon and port.isdigit() else None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _yaml(value: Any, name: str) -> str:
    """Return a value for people: JSON is YAML, and is one line."""
    match value:
        case None:
            return '""'
        case Secret():
            return f'"{MASK}"'
        case OpenLineage():
            return _yaml({f.name: getattr(value, f.name) for f in fields(OpenLineage)}, name)
        case bool():
            return str(value).lower()
        case dict():
            inner = (f"{k}: {_yaml(_hidden(k, v), k)}" for k, v in value.items())
            return "{" + ", ".join(inner) + "}"
        case list():
            return "[" + ", ".join(_yaml(v, name) for v in value) + "]"
        case str():
            return f'"{masked_text(value)}"'
    return str(value)


def _hidden(key: str, value: str) -> str:
    """Mask a Spark setting that is a secret by its name."""
    word = key.lower()
    return MASK if any(part in word for part in ("password", "secret", "token")) else value
