"""What a checkpoint's blob holds, and how it proves that it is whole.

One immutable JSON object with a first line of length and SHA-256, and the ids it belongs to: a
blob of another checkpoint, or a part of this one, is never taken for it.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from holdfast.core.checkpoint import Completed
from holdfast.core.gather import (
    CheckpointRound,
    Counts,
    OpenedTable,
    StagedCommittable,
    opened,
    watermark,
)
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.task import TaskRecord
from holdfast.master.ports import BlobBad
from holdfast.model.tree import Plain

VERSION = 1


@dataclass(frozen=True, slots=True)
class TaskStart:
    """Where a task starts: positions are None at the very beginning."""

    positions: tuple[tuple[str, Plain], ...] | None = None
    counts: Counts = field(default_factory=Counts)
    opened: tuple[OpenedTable, ...] | None = ()


FRESH = TaskStart()


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """A checkpoint's content: where each source reads next, and what is to be committed.

    `opened` are the tables that have had their save modes, or have them here; None, in checkpoints
    of former versions of Holdfast: all that are written to.
    """

    version: int
    job: str
    incarnation: str
    pipeline: int
    number: int
    positions: dict[str, Plain]
    staged: tuple[StagedCommittable, ...]
    watermark: int | None
    counts: dict[str, Counts] = field(default_factory=dict)
    opened: tuple[OpenedTable, ...] | None = None

    def start(self, task: TaskRecord) -> TaskStart:
        """Return where a task starts that continues from here."""
        known = tuple((s, self.positions[s]) for s in task.sources if s in self.positions)
        return TaskStart(known, self.counts.get(task.id, Counts()), self.opened)

    def to_commit(self, previous: int) -> tuple[StagedCommittable, ...]:
        """Return what became part of this checkpoint after the complete one before it.

        A task that does not know of a complete checkpoint yet repeats what that holds; it is
        committed under that one's number.
        """
        return tuple(s for s in self.staged if s.created > previous)

    def rows(self, sink: str) -> dict[str, int]:
        """Return how many rows went to each table of a sink, since the start of the incarnation."""
        found: Counter[str] = Counter()
        for written in (w for c in self.counts.values() for w in c.written if w.sink == sink):
            found[written.table] += written.rows
        return dict(found)


def blob_name(pipeline: PipelineRecord, number: int, term: int) -> str:
    """Return a name that no other checkpoint and no other leader uses."""
    return f"{prefix(pipeline.job, pipeline.incarnation)}{pipeline.number:04}/{number:08}-{term}"


def prefix(job: str, incarnation: str) -> str:
    """Return what all blobs of one incarnation start with."""
    return f"{job}/{incarnation}/"


def write(pipeline: PipelineRecord, gathering: CheckpointRound) -> bytes:
    """Return the blob of a checkpoint that every task has acknowledged."""
    content = CheckpointContent(
        version=VERSION,
        job=pipeline.job,
        incarnation=pipeline.incarnation,
        pipeline=pipeline.number,
        number=gathering.number,
        positions={source: at for ack in gathering.acks for source, at in ack.positions},
        staged=tuple(s for ack in gathering.acks for s in ack.staged),
        watermark=watermark(gathering.acks),
        counts={ack.task: ack.counts for ack in gathering.acks},
        opened=opened(gathering.acks),
    )
    return pack(content)


def pack(content: CheckpointContent) -> bytes:
    """Return a content as a blob holds it."""
    body = msgspec.json.encode(content)
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def read(blob: bytes) -> CheckpointContent:
    """Read a blob back, or raise `BlobBad`."""
    head, _, body = blob.partition(b"\n")
    length, _, digest = head.decode(errors="replace").partition(" ")
    if length != str(len(body)) or digest != hashlib.sha256(body).hexdigest():
        raise BlobBad("The checkpoint is cut short or damaged: its checksum does not fit.")
    try:
        content = msgspec.json.decode(body, type=CheckpointContent)
    except msgspec.DecodeError as error:
        raise BlobBad(f"The checkpoint cannot be read: {error}.") from error
    if content.version != VERSION:
        raise BlobBad(f"The checkpoint has version {content.version}, known is {VERSION}.")
    return content


def read_for(blob: bytes, pipeline: PipelineRecord, completed: Completed) -> CheckpointContent:
    """Read a blob that must be this pipeline's checkpoint of this number."""
    content = read(blob)
    ids = (content.job, content.incarnation, content.pipeline, content.number)
    if ids != (pipeline.job, pipeline.incarnation, pipeline.number, completed.number):
        raise BlobBad(
            f"The checkpoint belongs to {ids}, not to this pipeline's {completed.number}."
        )
    return content
