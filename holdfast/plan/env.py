"""The `env` block: what a job says about itself rather than about its data."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import describe, option, options, read_options
from holdfast.model.job import Mode
from holdfast.model.tree import Block, Entry, Items, Node, Plain, Scalar

DEFAULT_NAME = "SeaTunnel_Job"
STREAMING_INTERVAL_MS = 10_000


@options
class EnvOptions:
    """Options of the `env` block."""

    #: The job's name in lists, logs and metrics; a name given on the command line wins.
    job_name: str = option(DEFAULT_NAME, key="job.name", aliases=("job_name", "jobName"))
    #: BATCH reads all there is and ends; STREAMING runs until it is stopped.
    job_mode: Mode = option(Mode.BATCH, key="job.mode", aliases=("job_mode", "jobMode"))
    #: How many readers share the work of a source that does not say so itself.
    parallelism: int = option(1, aliases=("execution.parallelism",), at_least=1)
    #: Milliseconds between checkpoints, at least 10.  Without it a BATCH job takes none before its
    #: end, and a STREAMING job takes one every 10 seconds.
    checkpoint_interval: int | None = option(
        None, key="checkpoint.interval", aliases=("execution.checkpoint.interval",), at_least=10
    )
    #: Milliseconds after which a checkpoint that is not complete is given up, at least 10.
    checkpoint_timeout: int | None = option(
        None, key="checkpoint.timeout", aliases=("execution.checkpoint.timeout",), at_least=10
    )
    #: How often a failed pipeline is started again before the job fails.
    job_retry_times: int = option(3, key="job.retry.times", at_least=0)
    #: Seconds to wait before a failed pipeline is started again.
    job_retry_interval_seconds: int = option(3, key="job.retry.interval.seconds", at_least=0)
    #: The most rows each reader takes in a second.  Without it, no limit.
    rows_per_second: int | None = option(None, key="read_limit.rows_per_second", at_least=1)
    #: The most bytes each reader takes in a second.  Without it, no limit.
    bytes_per_second: int | None = option(None, key="read_limit.bytes_per_second", at_least=1)
    #: The column that says when a row happened, in every source that has it and names no other: a
    #: timestamp, a date, or milliseconds since 1970.  Without it, commits carry no watermark.
    watermark_column: str | None = option(None, key="watermark.column")
    #: By how many seconds rows may come out of order: the watermark stays so far behind.
    watermark_delay: float = option(0.0, key="watermark.delay.seconds", at_least=0)
    #: After how many seconds without rows a source does not hold the watermark back any more.
    watermark_idle: float = option(60.0, key="watermark.idle.seconds", at_least=0)
    #: How many seconds to keep what a savepoint, a failure or a cancel leaves to be restored; 0:
    #: until it is removed.
    savepoint_retained: int = option(
        2_592_000, key="savepoint.retained.seconds", aliases=("savepoint.retained",), at_least=0
    )
    #: Tags that a worker must have to run this job.
    tag_filter: dict[str, str] = option({})
    #: Jar files that Spark loads, such as JDBC drivers, with semicolons between; as spark.jars.
    jars: str | None = None
    #: Names and values of your own; Holdfast keeps them and does nothing with them.
    custom_parameters: Plain = None
    #: Where save modes are carried out.  Holdfast does so where the job runs, whatever this says.
    savemode_location: str = option("CLUSTER", key="savemode.execute.location")
    #: How credentials in the file are encrypted.  Only `default`, not at all, is supported: take
    #: credentials from variables instead.
    shade_identifier: str = option("default", key="shade.identifier")
    #: Which options are encrypted; of no use without shade.identifier.
    shade_options: Plain = option(None, key="shade.options")
    #: Settings of the decryption; of no use without shade.identifier.
    shade_properties: Plain = option(None, key="shade.properties")
    #: Milliseconds of rest between checkpoints.  Accepted, not used.
    min_pause: int | None = option(None, key="min-pause")
    #: How many pipelines run at once.  Accepted, not used: all run at once.
    pipeline_concurrency: int | None = None
    #: Milliseconds between flushes of a sink.  Accepted, not used: sinks write whole slices.
    sink_flush_interval: int | None = option(None, key="sink.flush.interval")
    #: Whether checkpoints outlive a cancelled job.  Accepted, not used: they do.
    retain: bool | None = option(None, key="checkpoint.retain-after-job-cancelled")
    #: What to do with rows that fail.  Accepted, not used: a row that fails, fails the job.
    error_handler: Plain = None
    #: As error_handler, for transforms.  Accepted, not used.
    transform_error_handler: Plain = None
    #: As error_handler, for sinks.  Accepted, not used.
    sink_error_handler: Plain = None
    #: Sampling inside SeaTunnel's engine.  Accepted, not used.
    engine_observability: Plain = option(None, key="engine.observability")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option shows."""
        if self.shade_identifier.lower() != "default":
            yield (
                "shade_identifier",
                f"shade.identifier = '{self.shade_identifier}' is not supported: encrypted"
                " credentials cannot be read. Remove it and give credentials as variables,"
                " such as password = ${DB_PASSWORD}.",
            )

    @property
    def interval_ms(self) -> int | None:
        """Milliseconds between checkpoints; None: only one, at the end."""
        if self.checkpoint_interval is None and self.job_mode is Mode.STREAMING:
            return STREAMING_INTERVAL_MS
        return self.checkpoint_interval


@dataclass(frozen=True, slots=True)
class Env:
    """What the `env` block says: its options, and settings for Spark in the order of the file."""

    options: EnvOptions
    spark: tuple[tuple[str, str], ...]


NOT_USED = {
    "min_pause", "pipeline_concurrency", "sink_flush_interval", "retain", "error_handler",
    "transform_error_handler", "sink_error_handler",
}  # fmt: skip
"""Options that would change what a job does if we had them; a job that sets one gets a warning."""


def read_env(block: Block, report: CheckReport) -> Env | None:
    """Read the `env` block, or report every mistake and return None."""
    foreign, own = _separate(block)
    settings = {k: _setting(e.node) for k, e in foreign.items() if k.startswith("spark.")}
    _warn_of_foreign({k: e for k, e in foreign.items() if k not in settings}, report)
    found = read_options(EnvOptions, own, "env", report)
    for info in describe(EnvOptions):
        entry = own.find(info.key) if info.name in NOT_USED else None
        if entry:
            report.warn(entry.place, f"env: {info.key} has no effect. {info.doc}")
    if found is None:
        return None
    if found.jars:
        listed = [jar.strip() for jar in found.jars.split(";") if jar.strip()]
        settings.setdefault("spark.jars", ",".join(listed))
    return Env(found, tuple(settings.items()))


def is_env_option(key: str) -> bool:
    """Say whether a key found outside `env` belongs into it."""
    return key in {k.split(".")[0] for k in _keys()} or key in ("spark", "flink")


@cache
def _keys() -> frozenset[str]:
    return frozenset(k for info in describe(EnvOptions) for k in (info.key, *info.aliases))


def _separate(block: Block) -> tuple[dict[str, Entry], Block]:
    """Return what is meant for an engine (spark.*, flink.*, execution.*), and the rest."""
    foreign: dict[str, Entry] = {}
    own: list[Entry] = []
    for entry in block.entries:
        head = entry.key.split(".")[0]
        if head not in ("spark", "flink", "execution") and not head.startswith("openlineage"):
            own.append(entry)
            continue
        for path, leaf in Block((entry,), block.place).leaves():
            if path in _keys():
                own.append(Entry(path, leaf.node, leaf.place))
            else:
                foreign[path] = leaf
    return foreign, Block(tuple(own), block.place)


def _warn_of_foreign(foreign: dict[str, Entry], report: CheckReport) -> None:
    if foreign:
        first = next(iter(foreign.values()))
        report.warn(
            first.place,
            f"env: {', '.join(foreign)} {'has' if len(foreign) == 1 else 'have'} no effect:"
            " Holdfast runs jobs on Spark. Settings that start with 'spark.' are passed on.",
        )


def _setting(node: Node) -> str:
    """Return a setting as Spark takes it: text, with commas between items."""
    match node:
        case Scalar(text=text):
            return text
        case Items(items=items):
            return ",".join(_setting(item) for item in items)
        case Block():
            return ""
