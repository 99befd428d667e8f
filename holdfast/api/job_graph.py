"""What a job looks like: its graph, its options without secrets, what its sinks promise.

It is made from the spec in the job's record, once for each incarnation: a spec never changes.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.api.views import PartView, StageView
from holdfast.connect.registry import Registry
from holdfast.core.job import JobRecord
from holdfast.errors import HoldfastError
from holdfast.model import job as model
from holdfast.model.job import Role
from holdfast.model.secret import MASK
from holdfast.model.tree import Block, Plain
from holdfast.plan.masking import masked
from holdfast.plan.promises import destination_of
from holdfast.plan.record import decode_spec
from holdfast.plan.show import guarantee_of, plan_data

FILES = "file"
SCHEMES = {"postgresql": "postgres", "s3a": "s3", "s3n": "s3"}
PORTS = {"postgres": 5432, "mysql": 3306, "mariadb": 3306}
PLACES = ("path", "warehouse")
KEPT = 3_000
PLANNED_AT_ONCE = 4


class Dataset(NamedTuple):
    """A dataset of OpenLineage."""

    namespace: str
    name: str


@dataclass(frozen=True)
class JobGraph:
    """A job's unchanging side.  `problem` says why it cannot be shown; "" if it can."""

    mode: str = ""
    file: str = ""
    env: dict[str, Plain] | None = None
    config: dict[str, Plain] | None = None
    stages: tuple[StageView, ...] = ()
    parts: tuple[PartView, ...] = ()
    dag: bytes = b"{}"
    env_json: bytes = b"{}"
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    problem: str = ""
    place_of: Callable[[str, str], str] = lambda sink, table: ""
    """Where a sink puts the rows of a table, as people name it; "" if it does not say."""

    @property
    def guarantees(self) -> dict[str, str]:
        """What each sink promises."""
        return {s.id: s.guarantee for s in self.stages if s.guarantee}


class JobGraphs:
    """The graphs of jobs that were looked at.  `unseal` opens what a record keeps."""

    def __init__(self, registry: Registry, unseal: Callable[[str], str]) -> None:
        self._registry = registry
        self._unseal = unseal
        self._kept: OrderedDict[tuple[str, str], JobGraph] = OrderedDict()
        self._planning = asyncio.Semaphore(PLANNED_AT_ONCE)

    def known(self, job: JobRecord) -> JobGraph | None:
        """Return a job's graph, if it is known."""
        return self._kept.get((job.id, job.incarnation))

    async def of(self, job: JobRecord) -> JobGraph:
        """Return a job's graph.  Planning takes milliseconds and so runs in a thread."""
        found = self.known(job)
        if found:
            return found
        async with self._planning:
            made = self.known(job)
            if made is None:
                made = await asyncio.to_thread(self._made, job)
        self._kept[job.id, job.incarnation] = made
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made

    def _made(self, job: JobRecord) -> JobGraph:
        try:
            spec = decode_spec(self._unseal(job.spec))
            planned = spec.job(self._registry)
        except HoldfastError as error:
            return JobGraph(problem=f"Its job file cannot be planned here: {error}")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            return JobGraph(problem=f"What its record keeps of the job file is damaged: {error!r}")
        return _sketch(job.id, planned, _env(spec.tree), self._registry)


def _sketch(
    job_id: str, planned: model.JobPlan, env: dict[str, Plain], registry: Registry
) -> JobGraph:
    options = _options(planned, registry)
    numbers = {s.id: n + 1 for n, s in enumerate(planned.stages)}
    stages = _stages(planned, options, numbers, registry)
    parts = tuple(
        PartView(p.id, {t.id: list(t.stages) for t in p.tasks}) for p in planned.pipelines
    )
    config: dict[str, Plain] = {"env": env}
    for role in Role:
        config[role.value] = [{"plugin_name": s.plugin, **options[s.id]} for s in planned.of(role)]
    dag = {
        "jobId": job_id,
        "pipelineEdges": {str(p.id): list(_edges(planned, p, numbers)) for p in planned.pipelines},
        "envOptions": env,
        "vertexInfoMap": [
            {"vertexId": s.vertex, "type": s.role, "vertexName": s.id, "tablePaths": s.tables}
            for s in stages
        ],
    }
    return JobGraph(
        planned.mode.value, planned.file, env, config, stages, parts,
        msgspec.json.encode(dag), msgspec.json.encode(env),
        _datasets(Role.SOURCE, stages, options), _datasets(Role.SINK, stages, options),
        place_of=_places(planned, registry),
    )  # fmt: skip


def _places(planned: model.JobPlan, registry: Registry) -> Callable[[str, str], str]:
    """Return a function that says where a sink puts a table.  It keeps the sinks alone."""
    sinks = {stage.id: stage for stage in planned.of(Role.SINK)}

    def place_of(sink: str, table: str) -> str:
        stage = sinks.get(sink)
        try:
            return destination_of(stage, registry, table) if stage else ""
        except HoldfastError:
            return ""  # what a plug-in cannot say of its options must not hide the rest

    return place_of


def _datasets(
    role: Role, stages: tuple[StageView, ...], options: dict[str, dict[str, Plain]]
) -> tuple[Dataset, ...]:
    """Return what the sources read, or what the sinks write."""
    source = role is Role.SOURCE
    found = [
        d
        for s in stages
        if s.role == role.value
        for d in datasets_of(s.plugin, s.id, options[s.id], s.tables, source)
    ]
    return tuple(dict.fromkeys(found))


def _options(planned: model.JobPlan, registry: Registry) -> dict[str, dict[str, Plain]]:
    """Return the options of each stage without secrets."""
    shown: Any = plan_data(planned, registry)["stages"]
    return {s["id"]: s["options"] for s in shown}


def _stages(
    planned: model.JobPlan,
    options: dict[str, dict[str, Plain]],
    numbers: dict[str, int],
    registry: Registry,
) -> tuple[StageView, ...]:
    tables: dict[str, list[str]] = {}
    stages = []
    for stage in planned.stages:
        named = list(dict.fromkeys(_tables(options[stage.id])))
        fed = list(dict.fromkeys(t for i in stage.inputs for t in tables.get(i, [])))
        tables[stage.id] = named if stage.role is Role.SOURCE else fed or named
        promise = guarantee_of(stage, registry)
        view = StageView(
            stage.id, numbers[stage.id], stage.role.value, stage.plugin, list(stage.inputs),
            stage.output or "", stage.parallelism, stage.place.line,
            promise.value if promise else "", tables[stage.id],
        )  # fmt: skip
        stages.append(view)
    return tuple(stages)


def _edges(
    planned: model.JobPlan, part: model.PipelinePlan, numbers: dict[str, int]
) -> Iterator[dict[str, str]]:
    for name in part.stages:
        for feeder in planned.stage(name).inputs:
            if feeder in part.stages:
                yield {
                    "inputVertexId": str(numbers[feeder]),
                    "targetVertexId": str(numbers[name]),
                }


def _env(tree: Block) -> dict[str, Plain]:
    """Return the options of env by their dotted names, as SeaTunnel shows them."""
    node = tree.get("env")
    leaves = node.leaves() if isinstance(node, Block) else ()
    return {path: masked(entry.node, None, path) for path, entry in leaves}


def _tables(options: Plain) -> Iterator[str]:
    """Yield the table paths that a stage's options name."""
    match options:
        case dict():
            for key, value in options.items():
                if key in ("table", "table_path") and isinstance(value, str) and value != MASK:
                    yield value
                elif isinstance(value, dict | list):
                    yield from _tables(value)
        case list():
            for item in options:
                yield from _tables(item)


def datasets_of(
    plugin: str, stage: str, options: dict[str, Plain], tables: list[str], source: bool
) -> tuple[Dataset, ...]:
    """Return what a source reads or a sink writes.  `tables` are those that the plan names."""
    url, place = _text(options, "url"), _place(options)
    found: list[Dataset] = []
    try:
        if url.startswith("jdbc:"):
            found = list(_in_database(url.removeprefix("jdbc:"), options, tables, source))
        elif place:
            found = list(_in_store(place, plugin, options, tables, source))
    except ValueError:
        found = []  # an address that only its driver understands
    # Rows that are generated, or only shown: no other tool has a name for them.
    own = [Dataset(f"holdfast:{plugin}", t) for t in tables or [stage]]
    return tuple(dict.fromkeys(found or own))


def _in_database(
    url: str, options: dict[str, Plain], tables: list[str], source: bool
) -> Iterator[Dataset]:
    parts = urlsplit(url)
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    namespace = f"{scheme}://{parts.hostname or ''}:{parts.port or PORTS.get(scheme, 0)}"
    database = _text(options, "database") or parts.path.strip("/")
    for table in _named(options, tables, source):
        short = table.removeprefix(f"{database}.")
        yield Dataset(namespace, f"{database}.{short}" if database else short)


def _in_store(
    place: str, plugin: str, options: dict[str, Plain], tables: list[str], source: bool
) -> Iterator[Dataset]:
    namespace, path = _split(place)
    whole = "path" in options
    for table in _named(options, tables, source) or [""]:
        filled = _filled(path, table)
        if whole or not table:
            yield Dataset(namespace, filled)
            continue
        database = _filled(_text(options, "database") or _text(options, "namespace"), table)
        folder = f"{database}.db" if plugin == "Paimon" else database
        name = table.rpartition(".")[2]
        yield Dataset(namespace, "/".join(p for p in (filled.rstrip("/"), folder, name) if p))


def _named(options: dict[str, Plain], tables: list[str], source: bool) -> list[str]:
    """Return table names: a sink's own option says them, with the source's put into its gaps."""
    own = _text(options, "table")
    if source or not own:
        return tables
    return [_filled(own, t) for t in tables or [""]] if "${" in own else [own]


def _filled(text: str, table: str) -> str:
    parts = table.split(".")
    known = {
        "table_name": parts[-1],
        "schema_name": parts[-2] if len(parts) > 2 else "",
        "database_name": parts[0] if len(parts) > 1 else "",
    }
    for name, value in known.items():
        before, found, rest = text.partition("${" + name)
        if found:
            default, _, after = rest.partition("}")
            text = before + (value or default.removeprefix(":")) + after
    return text


def _place(options: dict[str, Plain]) -> str:
    """Return where files are, as the stage or its catalog says."""
    blocks = [options, *(v for v in options.values() if isinstance(v, dict))]
    return next((t for b in blocks for key in PLACES if (t := _text(b, key))), "")


def _split(place: str) -> tuple[str, str]:
    parts = urlsplit(place)
    if parts.scheme in ("", FILES):
        return FILES, parts.path or place
    port = f":{parts.port}" if parts.port else ""
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.hostname or ''}{port}", parts.path.lstrip("/")


def _text(options: dict[str, Plain], key: str) -> str:
    value = options.get(key)
    return value if isinstance(value, str) else ""
