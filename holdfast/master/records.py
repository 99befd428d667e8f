"""How records look in the store: JSON with a version, read strictly.

A version this code does not know is refused, never half-read: a master that meets one must not
lead, or it would drop fields that a newer one wrote.
"""

from typing import TypeVar

import msgspec

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.errors import HoldfastError

VERSION = 1
GRAVE = "grave/"
SAVED = "saved/"

R = TypeVar("R", JobRecord, PipelineRecord, Saved)


class RecordUnreadable(HoldfastError):
    """A record is of another version, or is damaged."""


def encode(record: JobRecord | PipelineRecord | Saved) -> bytes:
    """Return a record as the store keeps it."""
    return msgspec.json.encode({"version": VERSION, "record": record})


def decode(kind: type[R], value: bytes) -> R:
    """Read a record back.  Raises `RecordUnreadable` rather than guess."""
    try:
        envelope = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
        version = msgspec.json.decode(envelope["version"])
        if version != VERSION:
            raise RecordUnreadable(
                f"A {kind.record_name} record has version {version}; this Holdfast knows"
                f" {VERSION}. Upgrade this master before it may lead.",
                code="record.version",
            )
        return msgspec.json.decode(envelope["record"], type=kind)
    except (msgspec.DecodeError, KeyError) as error:
        raise RecordUnreadable(
            f"A {kind.record_name} record cannot be read: {error}.", code="record.damaged"
        ) from error


def job_key(job: str) -> str:
    """Return the key of a job's record."""
    return f"job/{job}"


def pipeline_key(job: str, number: int) -> str:
    """Return the key of a pipeline's record."""
    return f"pipeline/{job}/{number:04}"


def history_key(job: str, incarnation: str) -> str:
    """Return the key of what stays when a job is gone."""
    return f"history/{job}/{incarnation}"


def grave_key(job: str, incarnation: str) -> str:
    """Return the key of an ended incarnation whose id the next one has taken over."""
    return f"{GRAVE}{job}/{incarnation}"


def saved_key(saved: str) -> str:
    """Return the key of a saved state."""
    return f"{SAVED}{saved}"
