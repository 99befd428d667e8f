"""Accept a job: the records of a new incarnation, which may start from a saved state.

All of it is one transaction.  An incarnation that starts from a saved state need not wait until
the last one of its id is cleaned up: in the same transaction the former record moves to a grave,
where its cleanup continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.errors import Fenced, OutcomeUnknown, Unavailable, UserError
from holdfast.master import checkpoint_content
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import BlobBad
from holdfast.master.records import encode, grave_key, job_key, pipeline_key, saved_key
from holdfast.master.saved_states import Heir, Vault
from holdfast.store.contract import Delete, Guard, Put

STATES_MAX = 50


@dataclass(frozen=True, slots=True)
class JobStart:
    """What an incarnation starts from: a saved state, and what each new pipeline begins with.

    `contents` are blobs of the new incarnation already: mapped, and under number 0.
    """

    saved: Saved
    contents: tuple[tuple[int, bytes], ...]
    write_again: bool = False


class Led(Protocol):
    """What a leader brings to accept a job."""

    desk: LeaderStore
    vault: Vault
    jobs: dict[str, JobKeeper]

    def took(
        self,
        job: JobRecord,
        pipelines: tuple[PipelineRecord, ...],
        revision: int,
        former: JobKeeper | None,
    ) -> None:
        """Keep an incarnation that has just become durable."""


async def accept(
    led: Led, job: JobRecord, pipelines: tuple[PipelineRecord, ...], start: JobStart | None
) -> None:
    """Make a new incarnation durable.  The caller has checked that its id is free."""
    since_s, clock_s, vault = led.desk.ports.clock.date(), led.desk.time.now(), led.vault
    job = replace(job, since_s=since_s)
    pipelines = tuple(replace(p, since_s=since_s, clock_s=clock_s) for p in pipelines)
    if start is None and not vault.of(job.id):
        await _write(led, job, pipelines, None, ())
        return
    async with vault.lock:
        bases = [s.id for s in vault.of(job.id)] if start is None else [start.saved.id]
        if len(bases) > STATES_MAX:
            raise UserError(
                f"Job {job.id} has {len(bases)} saved states, at most {STATES_MAX} may be there"
                " when it is restarted. Remove some: holdfast savepoints rm.",
                code="saved.many",
            )
        if start is None:
            await _write(led, job, pipelines, None, bases)
            return
        check_line(vault, start.saved, write_again=start.write_again)
        job = replace(job, origin="" if vault.past(start.saved) else start.saved.id)
        vault.bearing.add(job.incarnation)
        try:
            named = await _store(led.desk, pipelines, start)
            await _write(led, job, named, start, bases)
        finally:
            vault.bearing.discard(job.incarnation)


def check_line(vault: Vault, saved: Saved, *, write_again: bool) -> None:
    """Refuse a state if a later incarnation has shown rows that would be written again."""
    if vault.keeps(saved.job, saved.incarnation) is None:
        raise UserError(
            f"Saved state {saved.life} of job {saved.job} is gone. holdfast savepoints lists what"
            " is there.",
            code="saved.gone",
        )
    past = vault.past(saved)
    if past and not write_again:
        more = "; ".join(told(heir) for heir in past)
        raise UserError(
            f"Saved state {saved.life} of job {saved.job} is not where its rows end: {more}. To"
            " start from it would write those rows again. Start from the latest saved state, or"
            " give --write-again.",
            code="saved.past",
        )


def told(heir: Heir) -> str:
    """Say in words what an incarnation has shown, or may show yet."""
    who = f"job {heir.job}, life {heir.life},"
    if not heir.over:
        return f"{who} has gone on from there and is not over"
    if not heir.shown:
        return f"{who} may have shown a commit whose outcome was never reported"
    commits = ", ".join(f"commit {number} of pipeline {p}" for p, number in heir.shown)
    return f"{who} has shown {heir.rows:,} rows more, up to {commits}"


async def _store(
    desk: LeaderStore, pipelines: tuple[PipelineRecord, ...], start: JobStart
) -> tuple[PipelineRecord, ...]:
    """Store what the pipelines begin with, under names of this incarnation and of this term."""
    contents, named = dict(start.contents), []
    for pipeline in pipelines:
        content = contents.get(pipeline.number)
        if content is None:
            named.append(pipeline)  # it is new, and begins at the start of its input
            continue
        name = checkpoint_content.blob_name(pipeline, 0, desk.term)
        await _put(desk, name, content)
        named.append(replace(pipeline, restore=name))
    return tuple(named)


async def _put(desk: LeaderStore, name: str, content: bytes) -> None:
    ports = desk.ports
    desk.check()
    try:
        await ports.durable("saved.import", lambda: ports.blobs.put(name, content))
    except (Unavailable, OutcomeUnknown) as error:
        raise Unavailable(f"The saved state could not be taken over: {error} Ask again.") from error
    try:
        desk.check()
    except Fenced:
        await desk.take_back(name)
        raise


async def _write(
    led: Led,
    job: JobRecord,
    pipelines: tuple[PipelineRecord, ...],
    start: JobStart | None,
    bases: Sequence[str],
) -> None:
    former = led.jobs.get(job.id)
    if former is None:
        await _records(led, job, pipelines, start, bases, None)
        return
    # Its cleanup may be deleting the records at this moment: either it comes first, or never.
    async with former.turn:
        if former.gone:
            await _records(led, job, pipelines, start, bases, None)
            return
        former.close()
        await former.remember()
        await _records(led, job, pipelines, start, bases, former)


async def _records(
    led: Led,
    job: JobRecord,
    pipelines: tuple[PipelineRecord, ...],
    start: JobStart | None,
    bases: Sequence[str],
    former: JobKeeper | None,
) -> None:
    """Write the records of an incarnation, and move those of its predecessor out of the way."""
    desk, key = led.desk, job_key(job.id)
    puts: dict[str, Put | Delete] = {key: Put(key, encode(job))}
    puts |= {k: Put(k, encode(p)) for p in pipelines for k in [pipeline_key(p.job, p.number)]}
    stands = dict.fromkeys(puts, 0)
    if former:
        grave = grave_key(former.state.id, former.state.incarnation)
        puts[grave], stands[grave] = Put(grave, encode(former.state)), 0
        stands[key] = former.revision
        for part in former.pipelines.values():
            stands[part.key] = part.revision
            puts.setdefault(part.key, Delete(part.key))
    if start:
        stands[saved_key(start.saved.id)] = led.vault.states[start.saved.id].revision
    changes = [*puts.values(), *led.vault.begins(job, bases)]
    guards = [Guard(k, revision) for k, revision in stands.items()]
    if former:
        revision = await desk.write(guards, changes, key, "job.hand_over")
    else:
        revision = await desk.write(guards, changes, key, "job.submit")
    led.vault.begun(job, bases)
    led.took(job, pipelines, revision, former)


async def contents_of(
    desk: LeaderStore, saved: Saved
) -> dict[int, checkpoint_content.CheckpointContent]:
    """Return where each pipeline of an ended incarnation stopped.  Refuse a bad checkpoint.

    A pipeline that is not among them begins at the start of its input.
    """
    found = {}
    for part in saved.parts:
        for name in part.blobs:
            try:
                content = checkpoint_content.read(await desk.ports.blobs.get(name))
            except BlobBad as error:
                raise UserError(
                    f"Saved state {saved.life} of job {saved.job} cannot be used: its checkpoint"
                    f" {name} is lost. {error} Start from another one; holdfast savepoints lists"
                    " them.",
                    code="saved.damaged",
                ) from error
            if name == part.blob:
                found[part.pipeline] = content
    return found
