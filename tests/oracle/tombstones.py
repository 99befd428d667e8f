"""H. Tombstones and cleanup: everything of an ended life goes at once, nothing of a later one."""

from collections import defaultdict
from collections.abc import Iterator

from holdfast.core.job import TERMINAL, JobRecord
from holdfast.core.pipeline import PipelineRecord
from tests.oracle.events import Left, Write
from tests.oracle.story import Life, Story, life_of


def burials(story: Story) -> Iterator[str]:
    """I64 I65 I66: records go together, in one transaction, and only those of an ended life."""
    buried: dict[int, list[Write]] = defaultdict(list)
    for write, records in story.walk(Write):
        record = records.items.get(write.key)
        if write.deleted and record and not story.handed.get(write.revision):
            buried[write.revision].append(write)
            if life_of(record) not in records.ends:
                yield f"I65 {write.key} was removed before its job's end"
    for revision, writes in buried.items():
        keys = {w.key for w in writes}
        jobs = {k.removeprefix("job/") for k in keys if k.startswith("job/")}
        parts = {k.split("/")[1] for k in keys if k.startswith("pipeline/")}
        if jobs != parts:
            yield f"I66 {sorted(keys)} went without the rest"
        entries = {w.key for w in story.of(Write) if w.revision == revision}
        graves = {k for k in keys if k.startswith("grave/")}
        if (jobs or graves) and not any(k.startswith("history/") for k in entries):
            yield f"I64 {', '.join(sorted(jobs | graves))} went without leaving its end"


def leftovers(story: Story) -> Iterator[str]:
    """I67: when all is over nothing remains but history, savepoints and what tables show."""
    for left in story.of(Left):
        yield f"I67 left behind: {left.thing}"


def reuse(story: Story) -> Iterator[str]:
    """I68: an id is free again when the last life's records are gone, or have a grave."""
    for write, records in story.walk(Write):
        old = records.items.get(write.key)
        new = write.record
        handed = story.handed.get(write.revision, set())
        taken = old and isinstance(new, JobRecord | PipelineRecord) and life_of(old) != life_of(new)
        if old and taken and life_of(old) not in handed:
            yield f"I68 {write.key} was taken while its last life was there"


def delay(story: Story) -> Iterator[str]:
    """I70: a tombstone stands for its time at least."""
    ended: dict[Life, float] = {}
    for write, records in story.walk(Write):
        record = write.record
        if write.deleted:
            gone = records.items.get(write.key)
            stood_s = write.at - ended.get(life_of(gone), write.at) if gone else 0.0
            # Times in a story are rounded.
            if isinstance(gone, JobRecord) and stood_s + 0.001 < story.setting.tombstone_s:
                yield f"I70 the tombstone of {gone.id} stood {stood_s:.1f} s"
        elif isinstance(record, JobRecord) and record.status in TERMINAL:
            ended.setdefault(life_of(record), write.at)


CHECKS = (burials, leftovers, reuse, delay)
