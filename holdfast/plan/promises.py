"""What each sink of a job promises about its rows, why it is not more, and where it puts them."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.connect.placeholders import resolve
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink, WritePreview
from holdfast.model.job import Guarantee, JobPlan, Role, Stage
from holdfast.model.table import Table, TablePath
from holdfast.plan.plugins import stage_options


@dataclass(frozen=True, slots=True)
class Promise:
    """A sink's guarantee.  `why` says why it is only at-least-once; "" where that is not known."""

    guarantee: Guarantee
    why: str = ""

    def __str__(self) -> str:
        return f"{self.guarantee} ({self.why})" if self.why else self.guarantee.value


def guarantees(job: JobPlan, registry: Registry) -> dict[str, Promise]:
    """Return what each sink of a job promises, by stage id."""
    found = ((stage.id, promise_of(stage, registry)) for stage in job.of(Role.SINK))
    return {stage: promise for stage, promise in found if promise}


def promise_of(stage: Stage, registry: Registry) -> Promise | None:
    """Return what a sink promises with the options it has; None for other stages."""
    kind = registry.find(stage.role, stage.plugin)
    if kind is None or not issubclass(kind, Sink):
        return None
    guarantee = kind.promise(stage_options(stage, kind).own)
    return Promise(guarantee, kind.because if guarantee is Guarantee.AT_LEAST_ONCE else "")


MEANINGS = {
    "RECREATE_SCHEMA": "what is there is recreated",
    "CREATE_SCHEMA_WHEN_NOT_EXIST": "what is missing is created",
    "ERROR_WHEN_SCHEMA_NOT_EXIST": "the job fails if it is missing",
    "IGNORE": "what is missing is not created",
    "DROP_DATA": "rows that are there are removed",
    "APPEND_DATA": "rows that are there stay",
    "ERROR_WHEN_DATA_EXISTS": "the job fails if there are rows",
    "CUSTOM_PROCESSING": "custom_sql runs first",
    "append": "data that is there stays",
    "overwrite": "data that is there is removed",
    "errorifexists": "the job fails if there is data",
    "error": "the job fails if there is data",
    "ignore": "nothing is written if there is data",
}
"""What each value of a save mode means to what is at the place where rows go."""


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What a sink does with one table: where its rows go, and what happens to them."""

    table: str
    destination: str
    writing: WritePreview

    @property
    def how(self) -> str:
        """What happens to rows that meet others, in words."""
        writing = self.writing
        added = f"rows replace those with the same {', '.join(writing.keys)}"
        how = writing.how or (added if writing.keys else "rows are added")
        parts = f", partitioned by {', '.join(writing.partitions)}" if writing.partitions else ""
        return how + parts


def writes_of(stage: Stage, registry: Registry, tables: Sequence[Table]) -> list[WriteTarget]:
    """Return what a sink does with each table that arrives; nothing for other stages."""
    kind = registry.find(stage.role, stage.plugin)
    if kind is None or not issubclass(kind, Sink):
        return []
    own = stage_options(stage, kind).own
    filled = [(resolve(own, table), table) for table in tables]
    return [
        WriteTarget(str(table.path), kind.destination(one, table), kind.writing(one, table))
        for one, table in filled
    ]


def modes_of(stage: Stage, registry: Registry) -> tuple[tuple[str, str], ...]:
    """Return what a sink does to what is there: options, given or not, and their values."""
    kind = registry.find(stage.role, stage.plugin)
    if kind is None or not issubclass(kind, Sink):
        return ()
    nothing = Table(TablePath.parse(stage.id), ())
    return kind.writing(stage_options(stage, kind).own, nothing).modes


def destination_of(stage: Stage, registry: Registry, path: str) -> str:
    """Say where a sink puts the rows of one table; "" if it does not say, or is no sink."""
    kind = registry.find(stage.role, stage.plugin)
    if kind is None or not issubclass(kind, Sink):
        return ""
    table = Table(TablePath.parse(path), ())
    return kind.destination(resolve(stage_options(stage, kind).own, table), table)


def keyed(job: JobPlan, registry: Registry) -> bool:
    """Say whether every sink replaces rows by their keys, so that none can be doubled."""
    sinks = [(stage, registry.find(stage.role, stage.plugin)) for stage in job.of(Role.SINK)]
    return bool(sinks) and all(
        kind is not None and issubclass(kind, Sink) and kind.keyed(stage_options(stage, kind).own)
        for stage, kind in sinks
    )
