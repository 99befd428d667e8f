"""What is counted, as it is declared, and how Prometheus reads it.

`METRICS` is the list: the values come from `routes/metrics.py`, the page from `make docs`.  Written
are Prometheus' text format 0.0.4 and OpenMetrics 1.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Labels = Mapping[str, str]


class Metric(NamedTuple):
    """A metric as it is declared.  `source` says where its value comes from."""

    name: str
    kind: str
    labels: str
    about: str
    source: str


PROCESS, STORE, LINEAGE = "this process", "calls of this process", "the sender of lineage events"
RECORDS, BEATS, BOARD = "the leader's records", "heartbeats of workers", "what this leader has seen"
PART = "job name pipeline"


def _of_job(name: str, kind: str, about: str, source: str, labels: str = PART) -> Metric:
    return Metric(f"holdfast_job_{name}", kind, labels, about, source)


METRICS = (
    Metric("holdfast_info", "gauge", "version master", "This master; always 1.", PROCESS),
    Metric("holdfast_leads", "gauge", "", "1 if this master leads.", PROCESS),
    Metric("holdfast_term", "gauge", "", "Its term as leader, counted from 1.", RECORDS),
    Metric("process_resident_memory_bytes", "gauge", "", "The most memory it has used.", PROCESS),
    Metric("process_cpu_seconds", "counter", "", "Processor time it has used.", PROCESS),
    Metric("process_start_time_seconds", "gauge", "", "When it was started.", PROCESS),
    Metric("process_open_fds", "gauge", "", "Files and sockets it has open.", PROCESS),
    Metric("holdfast_store_seconds", "histogram", "call", "How long the store took.", STORE),
    Metric(
        "holdfast_store_failures", "counter", "call", "Calls that the store did not answer.", STORE
    ),
    Metric("holdfast_blob_seconds", "histogram", "call", "How long storing a blob took.", STORE),
    Metric("holdfast_blob_failures", "counter", "call", "Blobs that were not stored.", STORE),
    Metric(
        "holdfast_lineage_events", "counter", "outcome", "Lineage events: sent, dropped.", LINEAGE
    ),
    Metric("holdfast_lineage_failures", "counter", "", "Tries that failed.", LINEAGE),
    Metric("holdfast_lineage_waiting", "gauge", "", "Lineage events that wait.", LINEAGE),
    Metric("holdfast_jobs", "gauge", "status", "Jobs by status.", RECORDS),
    Metric(
        "holdfast_jobs_health", "gauge", "health", "Jobs that are not over, by health.", RECORDS
    ),
    Metric("holdfast_slots", "gauge", "", "Slots of all workers.", BEATS),
    Metric("holdfast_slots_used", "gauge", "", "Slots that tasks are placed on.", RECORDS),
    Metric("holdfast_workers", "gauge", "", "Workers in contact.", BEATS),
    Metric("holdfast_workers_draining", "gauge", "", "Workers that get no task.", RECORDS),
    Metric("holdfast_jobs_set_aside", "gauge", "", "Jobs whose records are damaged.", RECORDS),
    Metric("job_count", "gauge", "type", "Jobs, in SeaTunnel's words.", RECORDS),
    Metric(
        "node_count", "gauge", "", "Nodes, in SeaTunnel's words: workers and the leader.", BEATS
    ),
    Metric(
        "holdfast_worker_cpu_cores",
        "gauge",
        "worker",
        "Cores that a worker and its Spark use.",
        BEATS,
    ),
    Metric("holdfast_worker_memory_bytes", "gauge", "worker", "Memory that they use.", BEATS),
    Metric(
        "holdfast_worker_spark_silent_seconds",
        "gauge",
        "worker",
        "How long a worker's Spark is silent, or starting for over 30 s; 0: it answers.",
        BEATS,
    ),
    _of_job(
        "health",
        "gauge",
        "0: OK, 1: LATE, 2: STALLED, by the ages of checkpoint and commit.",
        RECORDS,
    ),
    _of_job(
        "commit_age_seconds",
        "gauge",
        "Age of the oldest complete checkpoint that is not visible or whose hooks have not run.",
        RECORDS,
    ),
    _of_job("checkpoint_age_seconds", "gauge", "Time since the last complete checkpoint.", RECORDS),
    _of_job("checkpoint_interval_seconds", "gauge", "How often a checkpoint is due.", RECORDS),
    _of_job(
        "checkpoint_duration_seconds", "gauge", "How long the last complete checkpoint took.", BOARD
    ),
    _of_job(
        "checkpoint_size_bytes",
        "gauge",
        "How large the blob of the last complete checkpoint is.",
        BOARD,
    ),
    _of_job(
        "checkpoints",
        "counter",
        "Checkpoints by outcome, since this leader took over.",
        BOARD,
        f"{PART} outcome",
    ),
    _of_job(
        "checkpoint_seconds",
        "counter",
        "Time spent on complete checkpoints, since this leader took over.",
        BOARD,
    ),
    _of_job(
        "checkpoint_failures_in_a_row",
        "gauge",
        "Checkpoints that failed since the last complete one.",
        RECORDS,
    ),
    _of_job("rows_read", "counter", "Rows read, as far as workers have reported.", BEATS),
    _of_job(
        "rows_rejected", "counter", "Rows read and left out (row_error_handle_way = SKIP).", RECORDS
    ),
    _of_job("rows_written", "counter", "Rows written by complete checkpoints.", RECORDS),
    _of_job("rows_committed", "counter", "Rows that are visible.", BOARD),
    _of_job("bytes_written", "counter", "Bytes written by complete checkpoints.", RECORDS),
    _of_job(
        "lag_seconds",
        "gauge",
        "Time between the watermark and now, where sources know event times.",
        RECORDS,
    ),
    _of_job(
        "restarts",
        "counter",
        "How often tasks were started again: attempts that were lost or failed.",
        BOARD,
        "job name",
    ),
    _of_job("retries", "gauge", "Retries that were used up.", RECORDS),
    Metric(
        "holdfast_metrics_jobs_left_out",
        "gauge",
        "",
        "Jobs that have no series here, because there are more than 1,000.",
        RECORDS,
    ),
)


@dataclass
class Family:
    """A metric: its name without `_total`, its kind, what it says, and its samples."""

    name: str
    kind: str
    about: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        """Add a sample of a gauge or a counter."""
        self.samples.append(("_total" if self.kind == "counter" else "", labels, value))

    def add_histogram(
        self, bounds: Sequence[float], counts: Sequence[int], number: int, total: float,
        **labels: str,
    ) -> None:  # fmt: skip
        """Add a histogram; `counts` are cumulative."""
        for bound, count in zip(bounds, counts, strict=True):
            self.samples.append(("_bucket", {**labels, "le": _number(bound)}, count))
        self.samples.append(("_bucket", {**labels, "le": "+Inf"}, number))
        self.samples.append(("_count", labels, number))
        self.samples.append(("_sum", labels, total))


def written(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """Return all metrics as text."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        plain = "_total" if family.kind == "counter" and not openmetrics else ""
        lines.append(f"# HELP {family.name}{plain} {_escaped(family.about)}")
        lines.append(f"# TYPE {family.name}{plain} {family.kind}")
        for suffix, labels, value in family.samples:
            pairs = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
            inside = f"{{{pairs}}}" if pairs else ""
            lines.append(f"{family.name}{suffix}{inside} {_number(value)}")
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
