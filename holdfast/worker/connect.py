"""Open what a job names before it runs: `holdfast check --connect`.

Written once for all connectors: a source or a sink says in `look` what is wrong at its place.  Who
is asked, with which tables, and how problems are reported, is here.  Nothing is changed anywhere.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.connect.checks import CheckReport
from holdfast.connect.plugin import problems_of
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.connect.source import Budget, Slice, Source
from holdfast.errors import Cancelled, HoldfastError, SourceLocation, UserError
from holdfast.model.job import JobPlan, Role, Stage, TaskPlan
from holdfast.model.table import Table
from holdfast.plan.foresee import Foreseen, about, foresee
from holdfast.plan.masking import masked_text
from holdfast.plan.plugins import build_plugin, context_for
from holdfast.worker.expect import tables_of
from holdfast.worker.failures import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _never() -> bool:
    return False


def look_at_places(
    job: JobPlan, registry: Registry, session: Callable[[], "SparkSession"], report: CheckReport, *,
    allow_python: bool = False, cancelled: Callable[[], bool] = _never,
    at: Callable[[str], None] = lambda _: None, broken: Collection[str] = (),
) -> None:  # fmt: skip
    """Report all that a plain check finds, and all that keeps the job from its places.

    `at` is called with each stage before it is asked.  Raises Cancelled once `cancelled` says so;
    what was found by then is in the report.  `broken`: stages with mistakes, which cannot be
    asked.
    """
    seen = foresee(job, registry, report, allow_python=allow_python, broken=broken)
    try:
        spark = session()
    except HoldfastError as error:
        report.error(SourceLocation(job.file, 1, 1), f"Spark does not start: {error}")
        return
    looking = _Looking(job, registry, spark, report, allow_python, cancelled, at, seen, broken)
    for pipeline in job.pipelines:
        for task in pipeline.tasks:
            looking.look_at(task)


@dataclass
class _Looking:
    job: JobPlan
    registry: Registry
    spark: "SparkSession"
    report: CheckReport
    allow_python: bool
    cancelled: Callable[[], bool]
    at: Callable[[str], None]
    seen: Foreseen
    broken: Collection[str]

    def look_at(self, task: TaskPlan) -> None:
        """Ask the sources of a task, then Spark for its tables, then its sinks about these."""
        stages = [self.job.stage(s) for s in task.stages if s not in self.broken]
        sources = [s for s in stages if s.role is Role.SOURCE]
        for stage in sources:
            self._tell(stage, partial(self._opened, task, stage))
        known = {s: tables for s, tables in self.seen.tables.items() if tables}
        if len(stages) == len(task.stages):  # Spark plans all of it, or nothing
            known |= self._tables(task, sources)
        for stage in stages:
            if stage.role is Role.SINK:
                self._tell(stage, partial(self._asked, task, stage, known.get(stage.id, ())))

    def _tables(self, task: TaskPlan, sources: Sequence[Stage]) -> Mapping[str, tuple[Table, ...]]:
        """Return the tables of each stage as Spark sees them; none if a stage fails."""
        found: list[Mapping[str, tuple[Table, ...]]] = []
        self._tell(sources[0], partial(self._ask_spark, task, found))
        if found:
            return found[0]
        for stage in sources if len(sources) > 1 else ():
            # The first that failed kept the others from being asked.
            self._tell(stage, partial(self._read, task, stage))
        return {}

    def _ask_spark(
        self, task: TaskPlan, found: list[Mapping[str, tuple[Table, ...]]]
    ) -> Iterable[str]:
        python, cancelled = self.allow_python, self.cancelled
        try:
            found.append(
                tables_of(
                    self.job, task, self.registry, self.spark, allow_python=python,
                    cancelled=cancelled,
                )
            )  # fmt: skip
        except Cancelled:
            raise
        except HoldfastError as error:
            stage = self._blamed(task, str(error))
            # What a plain check has found at a stage, Spark says once more in its own words.
            if not (isinstance(error, UserError) and stage.id in self.seen.wrong):
                self._say(stage, str(error))
        return ()

    def _blamed(self, task: TaskPlan, said: str) -> Stage:
        """Return the stage that an error is about: by its id, or by the name of its plug-in."""
        stages = [self.job.stage(s) for s in task.stages]
        by_id = [s for s in stages if s.id in said]
        by_name = [s for s in stages if s.role is not Role.SINK and about(s, said) == ""]
        by_name.sort(key=lambda s: s.id not in self.seen.wrong)
        return next(iter((*by_id, *by_name)), stages[0])

    def _opened(self, task: TaskPlan, stage: Stage) -> Iterable[str]:
        return self._source(task, stage).look(self.spark)

    def _read(self, task: TaskPlan, stage: Stage) -> Iterable[str]:
        source = self._source(task, stage)
        planned = source.plan(None, Budget(None, 0.0))
        if isinstance(planned, Slice):
            list(source.read(self.spark, planned.content))
        return ()

    def _asked(self, task: TaskPlan, stage: Stage, tables: Sequence[Table]) -> Iterable[str]:
        """Yield the problems of a sink."""
        sink = self._plugin(task, stage)
        assert isinstance(sink, Sink)
        yield from problems_of(sink.check_libraries)
        fit = []
        for table in tables:
            refused = list(problems_of(partial(sink.refuse, table)))
            yield from refused
            fit += [] if refused else [table]
        yield from sink.look(fit, self.spark)

    def _source(self, task: TaskPlan, stage: Stage) -> Source[Any]:
        source = self._plugin(task, stage)
        assert isinstance(source, Source)
        return source

    def _plugin(self, task: TaskPlan, stage: Stage) -> Any:
        context = context_for(self.job, task, stage, "check", self.allow_python)
        plugin = build_plugin(stage, self.registry, context)
        plugin.cancelled = self.cancelled
        return plugin

    def _tell(self, stage: Stage, ask: Callable[[], Iterable[str]]) -> None:
        """Report every problem that a stage reports, and the error that ends it."""
        if self.cancelled():
            raise Cancelled("The check was ended before it was done.")
        self.at(stage.id)
        try:
            with explained(stage):
                for said in ask():
                    self._say(stage, said)
        except Cancelled:
            raise
        except HoldfastError as error:
            self._say(stage, str(error))
        except OSError as error:  # what a file system or an object store answers
            self._say(stage, f"{error}.")

    def _say(self, stage: Stage, said: str) -> None:
        """Report a problem at the stage that it names, which may be another than was asked."""
        named = next((s for s in self.job.stages if s.id in said), stage)
        said = " ".join(said.replace(f" ({named.place})", "").split())
        said = masked_text(said.removeprefix(f"{named.id}: "))  # the line names the stage's place
        if any(m.place == named.place and m.message.endswith(said) for m in self.report.mistakes):
            return
        self.report.error(named.place, f"{about(named, said)}{said}")
