"""What a message between leader and worker says, as the event log of a test holds it."""

import json
from typing import Any

from holdfast.wire.codec import NAMES
from holdfast.wire.messages import Barrier, BarrierAck, SourceEndReport, TaskKey, ToWorker


def describe(message: ToWorker) -> dict[str, Any]:
    """Return what an order says, for `Order` and `Took`."""
    facts: dict[str, Any] = {"order": NAMES[type(message)], "term": message.term}
    key = getattr(message, "key", None)
    if key is not None:
        facts |= describe_task(key, message.attempt)  # type: ignore[union-attr]
    facts |= {n: getattr(message, n) for n in ("number", "source") if hasattr(message, n)}
    return facts


def describe_task(key: TaskKey, attempt: int) -> dict[str, Any]:
    """Return the name of an attempt."""
    return {
        "job": key.job,
        "incarnation": key.incarnation,
        "pipeline": key.pipeline,
        "task": key.task,
        "attempt": attempt,
    }


def describe_ack(message: BarrierAck, barrier: Barrier) -> dict[str, Any]:
    """Return what an answer to a barrier says, for `Ack`."""
    acked = message.acked
    return {
        **describe_task(message.key, acked.attempt),
        "worker": acked.place.incarnation,
        "number": acked.number,
        "ended": acked.ended,
        "positions": acked.positions,
        "staged": tuple((s.created, s.sink, file_name(s.content)) for s in acked.staged),
        "watermark": acked.watermark,
        "idle": acked.idle,
        "through": barrier.through,
        "complete": barrier.complete,
    }


def file_name(content: object) -> str:
    """Return the name under which a committable is known here."""
    if isinstance(content, str):
        return content
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def describe_report(report: SourceEndReport) -> dict[str, Any]:
    """Return what a report of a source's end says, for `Heard`."""
    task = describe_task(report.key, report.attempt)
    return {**task, "source": report.source, "worker": report.incarnation}
