"""The contract for sinks: stage out of sight, then commit.

Workers call `write`, which puts rows where no reader looks and returns what a commit will need.
Only `commit`, called once a checkpoint is durable, makes them visible.  A worker that dies in
between leaves invisible files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from holdfast.connect.placeholders import resolve
from holdfast.connect.plugin import O, Plugin
from holdfast.connect.rows import Tables
from holdfast.model.job import Guarantee, Role
from holdfast.model.table import Table
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPT = re.compile(r"(.+)-a(\d+)-s\d+")


def life_of(job_id: str, incarnation: str) -> str:
    """Return the name of one incarnation of a job."""
    return f"{job_id}.{incarnation}" if incarnation else job_id


@dataclass(frozen=True, slots=True)
class Staging:
    """Which try at which slice is being written.  No two tries share one.

    Anything a sink stages carries `name`, so that leftovers of a dead attempt can be distinguished
    and removed (`Leftovers`).
    """

    job_id: str
    task: str
    attempt: int
    number: int
    incarnation: str = ""

    @property
    def life(self) -> str:
        """The incarnation that it is part of, as `Opening` names it."""
        return life_of(self.job_id, self.incarnation)

    @property
    def name(self) -> str:
        """A name for files and tables that is unique to this try."""
        return f"{self.life}-{self.task}-a{self.attempt}-s{self.number}"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Which staged things will never be committed: of one incarnation, and perhaps only those
    that attempts of one task before `before` have staged."""

    job_id: str
    incarnation: str
    task: str | None = None
    before: int | None = None

    def include(self, name: str) -> bool:
        """Say whether something staged under this name (`Staging.name`) is among them."""
        life, _, rest = name.partition(f"{self.job_id}.{self.incarnation}-")
        found = _ATTEMPT.fullmatch(rest)
        if life or not found:
            return False
        if self.task is not None and found[1] != self.task:
            return False
        return self.before is None or int(found[2]) < self.before


@dataclass(frozen=True, slots=True)
class Committable:
    """All that any process needs to make staged rows of one table visible.

    `content` is plain data with the version of its layout; it is stored in checkpoints.
    `opening`: it brings no rows; it says what the save modes do to the table.
    """

    version: int
    table: str
    rows: int
    bytes: int
    content: Plain
    opening: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """Who opens tables, and what is known of them.

    `life` names this incarnation, and no other one.  `known` are the paths of tables whose save
    modes are in a checkpoint: none is to be given again.  Of those, `earlier` had theirs in an
    earlier incarnation: this one keeps what is in them, and their columns.
    """

    life: str = ""
    known: frozenset[str] = frozenset()
    earlier: frozenset[str] = frozenset()

    def new(self, table: Table) -> bool:
        """Say whether the save modes of a table are due."""
        return str(table.path) not in self.known


@dataclass(frozen=True, slots=True)
class CommitId:
    """Which commit this is.  `user` belongs to one incarnation and sink; `number` only grows.

    `watermark`: all rows up to this event time are in, if anybody knows (milliseconds since 1970).
    """

    user: str
    number: int
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class CommitEvent:
    """A commit that is visible, as the listener of its sink gets it.

    `committables` are those of this sink; none if nothing was staged for it.  `savepoint`: the
    checkpoint was one that a user asked to keep.  `final`: the input has ended, and no commit of
    this sink follows.
    """

    identifier: CommitId
    committables: tuple[Committable, ...]
    savepoint: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class WritePreview:
    """What happens to the rows of a table, for people to see before a job runs.

    Rows replace those with the same `keys`; without any they are added, unless `how` says what else
    they do.  `modes` are the options that say what is done to what is there, with their values.
    """

    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    modes: tuple[tuple[str, str], ...] = ()
    how: str = ""


SAVE_MODES = ("schema_save_mode", "data_save_mode")


def modes_in(options: object, names: Sequence[str] = SAVE_MODES) -> tuple[tuple[str, str], ...]:
    """Return those of the options that say what is done to what is there."""
    return tuple((name, str(getattr(options, name))) for name in names if hasattr(options, name))


ANYBODY = Opening()
"""A process that opens a table and is no job."""


class Sink(Plugin[O]):
    """Where rows go."""

    role: ClassVar[Role] = Role.SINK

    guarantee: ClassVar[Guarantee] = Guarantee.EXACTLY_ONCE
    """What this sink promises.  One that cannot stage says AT_LEAST_ONCE and writes in `write`."""

    because: ClassVar[str] = ""
    """Why it promises only AT_LEAST_ONCE, in a few words that `holdfast plan` shows."""

    overlaps: ClassVar[bool] = False
    """Whether `write` may be called for the next slice while it still writes one.

    Commits keep their order all the same.  A sink that says so leaves no core idle between slices.
    """

    @classmethod
    def promise(cls, options: O) -> Guarantee:
        """Return what a sink with these options promises, where that depends on them."""
        return cls.guarantee

    @classmethod
    def keyed(cls, options: O) -> bool:
        """Say whether each row surely replaces the one of its key, so that one which is written
        again changes nothing.  A sink that cannot tell from its options says no."""
        return False

    @classmethod
    def destination(cls, options: O, table: Table) -> str:
        """Say where the rows of a table go, as people name it: a folder, a table, a server.

        `options` are those for this table.  Everybody may see it, so it holds no secret.
        """
        return ""

    @classmethod
    def writing(cls, options: O, table: Table) -> WritePreview:
        """Say what happens to the rows of a table, as far as the options say it.

        `options` are those for this table, and nothing is opened.
        """
        return WritePreview(modes=modes_in(options))

    def target(self, table: Table) -> str:
        """Name the place that rows of a table go to, alike for all tables that share it.

        By it, and by stage and path, tables that had their save modes are known again.
        """
        where = self.destination(self.options_for(table), table)
        return f"{self.name}:{where or table.path}"

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written, wherever they go.

        For checks: without Spark, without a look at the place, any number of times.  A column
        whose type only Spark can tell has the type UNKNOWN.
        """

    def look(self, tables: Sequence[Table], spark: "SparkSession") -> Iterator[str]:
        """Open the place where rows go; yield a sentence for each problem that a job would meet.

        Each sentence says what mends the problem.  An error that is raised is one more problem,
        the last one.  Nothing visible may be created or changed.

        Called once by `holdfast check --connect`, with the tables that will arrive and that
        `refuse` has not refused: none where that is unknown, and without columns where they cannot
        tell these.
        """
        yield from ()

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Look at tables before their first rows are written, and refuse what cannot work.

        Called by every attempt of every task, also by one that was taken for dead and wakes.  So it
        changes nothing that anybody can see, but may make a table that is missing.  What the save
        modes do to a table that is `opening.new` is returned as committables with `opening` set:
        the first commit gets them with its rows, or without any, and applies them once for
        `opening.life`, in the same step as the rows where the store can.
        """
        return ()

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Write rows out of sight and return what `commit` needs.

        Called for each slice of each task, perhaps for one table at a time; again with another
        staging if it fails.  `rows` of a committable is -1 where only Spark's counters know it.
        """
        raise NotImplementedError

    def admit(self, committables: Sequence[Committable], life: str | None = None) -> None:
        """Raise UserError for a committable that this sink has not staged for that life of the job.

        Workers may say anything; the leader asks this of each answer, before it is in a checkpoint.
        It compares with the options alone: nothing is opened.  A sink that follows names in
        committables asks it again before it commits, aborts or listens.  `life` None: of any life.
        """

    def commit(self, identifier: CommitId, committables: Sequence[Committable]) -> None:
        """Make staged rows visible.  Called at least once, perhaps by another process.

        A repeated call with the same identifier changes nothing.  Runs without Spark.
        """

    def abort(self, committables: Sequence[Committable]) -> None:
        """Remove what was staged and will never be committed.  May be repeated."""

    def sweep(self, leftovers: Leftovers) -> None:
        """Remove whatever was staged under names that `leftovers` include and is not committed.

        Called when a job is over, and when a task continues after an attempt that died.  Runs
        without Spark, perhaps on another machine than the one that staged.  May be repeated.
        """

    @property
    def listens(self) -> bool:
        """Whether `listen` has something to do.  Where no sink of a pipeline says so, a commit
        costs nothing more."""
        return False

    def listen(self, commit: CommitEvent, state: Plain) -> Plain:
        """Do what belongs after a commit: a mark, a tag, a call.  Return what to remember.

        Called for every commit of the pipeline, in order, also for those with nothing for this
        sink, and for one by a former leader: at least once, perhaps by another
        process, so that a repeated call must do no harm.  `state` is what the last call returned
        (None at first), small and plain; it is kept in the job's record, and goes with a
        savepoint.  The commit stays whatever happens here: Unavailable and OutcomeUnknown are
        tried again, for as long as it takes; UserError fails the job.  Runs without Spark.
        """
        return state

    def finish(self, rows: Mapping[str, int]) -> None:
        """Called when the input has ended, just before the last commit.

        `rows` counts what was written for each table path, over the whole job.  Raise UserError
        to fail the job; what is staged then never shows.  May be repeated; runs without Spark.
        """

    def options_for(self, table: Table) -> O:
        """Return the options with `${table_name}` and its like filled in for one table."""
        return resolve(self.options, table)
