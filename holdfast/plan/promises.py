"""What each sink of a job promises about its rows, why it is not more, and where it puts them."""

from dataclasses import dataclass

from holdfast.connect.placeholders import resolve
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.model.job import Guarantee, Job, Role, Stage
from holdfast.model.table import Table, TablePath
from holdfast.plan.build import stage_options


@dataclass(frozen=True, slots=True)
class Promise:
    """A sink's guarantee.  `why` says why it is only at-least-once; "" where nobody said."""

    guarantee: Guarantee
    why: str = ""

    def __str__(self) -> str:
        return f"{self.guarantee} ({self.why})" if self.why else self.guarantee.value


def guarantees(job: Job, registry: Registry) -> dict[str, Promise]:
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


def destination_of(stage: Stage, registry: Registry, path: str) -> str:
    """Say where a sink puts the rows of one table; "" if it does not say, or is no sink."""
    kind = registry.find(stage.role, stage.plugin)
    if kind is None or not issubclass(kind, Sink):
        return ""
    table = Table(TablePath.parse(path), ())
    return kind.destination(resolve(stage_options(stage, kind).own, table), table)


def keyed(job: Job, registry: Registry) -> bool:
    """Say whether every sink replaces rows by their keys, so that none can be doubled."""
    sinks = [(stage, registry.find(stage.role, stage.plugin)) for stage in job.of(Role.SINK)]
    return bool(sinks) and all(
        kind is not None and issubclass(kind, Sink) and kind.keyed(stage_options(stage, kind).own)
        for stage, kind in sinks
    )
