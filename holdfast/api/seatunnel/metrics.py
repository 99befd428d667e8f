"""The figures of a job under SeaTunnel's names.

They come from the checkpoints and from the workers' heartbeats, so a restart counts no row twice.
Rates are those of the last seconds while a job runs, and of its whole life once it is over.
"""

import time
from collections.abc import Iterable, Mapping

from holdfast.api.status_board import JobStatusView
from holdfast.core.checkpoint import Totals
from holdfast.core.gather import Written
from holdfast.core.job import TERMINAL, JobRecord
from holdfast.core.pipeline import PipelineRecord

Figures = dict[str, str | dict[str, str]]
NO_TABLES: Figures = {
    f"{kind}{name}": {}
    for kind in ("TableSinkWrite", "TableSinkCommitted", "TableSourceReceived")
    for name in ("Count", "QPS", "Bytes", "BytesPerSeconds")
}


def metrics_of(
    job: JobRecord,
    parts: Iterable[PipelineRecord],
    sight: JobStatusView | None,
    visible: Totals | None,
) -> Figures:
    """Return the `metrics` of a job; `visible` is what it has committed, if that is known."""
    over = job.status in TERMINAL
    totals = job.totals if over else _totals(parts)
    read, written = totals.read, totals.written
    ran_s = max(0.001, (job.ended_s if over else time.time()) - job.since_s)
    if sight and not over:
        read = max(read, sum(r.last[1] for r in sight.rates.values()))
        written = max(written, sum(r.last[2] for r in sight.rates.values()))
    read_s, written_s = (read / ran_s, written / ran_s)
    if sight and not over:
        read_s, written_s = sight.rate()
    shown = totals if over else visible or Totals()
    figures: Figures = {
        "IntermediateQueueSize": "0",
        **_four("SourceReceived", read, read_s, 0),
        **_four("SinkWrite", written, written_s, totals.bytes),
        **_four("SinkCommitted", shown.written, shown.written / ran_s, shown.bytes),
    }
    return figures | NO_TABLES | _by_table(_tables(sight), ran_s)


def _by_table(tables: Mapping[str, tuple[int, int]], ran_s: float) -> Figures:
    """Return the figures of each table; nobody counts what sources read of one."""
    if not tables:
        return {}
    of_all = {
        "Count": {k: str(rows) for k, (rows, _) in tables.items()},
        "QPS": {k: f"{rows / ran_s:.2f}" for k, (rows, _) in tables.items()},
        "Bytes": {k: str(size) for k, (_, size) in tables.items()},
        "BytesPerSeconds": {k: f"{size / ran_s:.2f}" for k, (_, size) in tables.items()},
    }
    kinds = ("TableSinkWrite", "TableSinkCommitted")
    return {f"{kind}{name}": known for kind in kinds for name, known in of_all.items()}


def committed(parts: Iterable[PipelineRecord], sight: JobStatusView | None) -> Totals | None:
    """Return what is visible; None where the checkpoint that knew is gone."""
    if sight and sight.checks:
        return sum((c.committed for c in sight.checks.values()), Totals())
    found = Totals()
    for part in parts:
        through = part.commits.through
        known = next((c for c in part.checkpoints.kept if c.number == through), None)
        if through and known is None:
            return None
        found += known.totals if known else Totals()
    return found


def _totals(parts: Iterable[PipelineRecord]) -> Totals:
    return sum((p.checkpoints.latest.totals for p in parts if p.checkpoints.latest), Totals())


def _four(name: str, rows: int, rows_s: float, size: int) -> dict[str, str]:
    """Return the four figures of one kind.  Nobody counts the bytes that sources read: 0."""
    each = size / rows if rows else 0.0
    return {
        f"{name}Count": str(rows),
        f"{name}QPS": f"{rows_s:.2f}",
        f"{name}Bytes": str(size),
        f"{name}BytesPerSeconds": f"{rows_s * each:.2f}",
    }


def _tables(sight: JobStatusView | None) -> dict[str, tuple[int, int]]:
    """Return rows and bytes of each table, as the last complete checkpoints count them."""
    found: dict[str, tuple[int, int]] = {}
    counted: list[Written] = [w for c in sight.checks.values() for w in c.written] if sight else []
    for one in counted:
        key = f"{one.sink.partition('-')[0]}.{one.table}"
        rows, size = found.get(key, (0, 0))
        found[key] = (rows + one.rows, size + one.bytes)
    return found
