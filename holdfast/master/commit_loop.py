"""Publish commits and run their listeners, although others may be trying the same.

The question "have we committed this already?" and the commit itself use the same version of the
table: if the table moved in between, both start again.  So a paused former leader that wakes up in
the middle, and a successor that repeats its work, add every row once between them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from holdfast.core.checkpoint import CheckpointKind, Completed
from holdfast.core.commit import Committed, HooksFinished, later
from holdfast.core.effects import Commit, FinishFormer, Listen
from holdfast.core.former_commits import Former
from holdfast.core.gather import StagedCommittable
from holdfast.core.pipeline import FormerMoved, PipelineFailed
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.master import checkpoint_content
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import (
    BlobBad,
    CommitHookRequest,
    CommitRequest,
    Incarnation,
)

if TYPE_CHECKING:
    from holdfast.master.pipeline_keeper import PipelineKeeper

RETRY_S_MAX = 5.0
"""A listener that fails is asked less and less often: it may be somebody's web server."""


async def commit(keeper: "PipelineKeeper", effect: Commit) -> None:
    """Publish a complete checkpoint, sink by sink; repeat until each has it."""
    completed = effect.completed
    try:
        content = checkpoint_content.read_for(
            await keeper.blob_of(completed.blob), keeper.state, completed
        )
    except BlobBad as error:
        await keeper.lost(completed.number, error)
        return
    if completed.number in keeper.condemned:
        return
    keeper.begun.add(completed.number)
    life = keeper.life
    try:
        if completed.kind is CheckpointKind.FINAL:
            rows = {sink: content.rows(sink) for sink in keeper.state.sinks}
            await finish(keeper.desk, life, rows, keeper.failed)
        await _publish(keeper, life, completed, content)
        keeper.deaf = not await _has_listeners(keeper, life)
    except UserError as error:
        await keeper.handle(PipelineFailed(f"Commit {completed.number} failed. {error}"))
        return
    keeper.trouble = ""
    await keeper.handle(Committed(completed.number, content.watermark))
    keeper.made.discard(completed.number)
    keeper.begun.discard(completed.number)


async def _has_listeners(keeper: "PipelineKeeper", life: Incarnation) -> bool:
    """Say whether anybody listens to commits, or whether that is not known now."""
    try:
        return await keeper.desk.ports.tables.listens(life, keeper.state.sinks)
    except (Unavailable, OutcomeUnknown, UserError):
        return True  # then running them finds it out, and reports it


async def _publish(
    keeper: "PipelineKeeper",
    life: Incarnation,
    completed: Completed,
    content: checkpoint_content.CheckpointContent,
) -> None:
    for sink, staged in by_sink(content.to_commit(completed.previous)).items():
        user = commit_user(keeper.state.job, keeper.state.incarnation, keeper.state.number, sink)
        mark = later(keeper.state.commits.watermark, content.watermark)
        order = CommitRequest(life, user, completed.number, sink, staged, mark)
        keeper.trouble = f"sink {sink} has not answered"
        await publish(keeper.desk, order, keeper.failed)


async def run_hooks(keeper: "PipelineKeeper", effect: Listen) -> None:
    """Run the listeners of a commit.  The commit stays, even if they fail."""
    # None is dropped before its listeners have run.
    done = next(c for c in keeper.state.checkpoints.kept if c.number == effect.number)
    order = CommitHookRequest(
        keeper.life,
        commit_user(keeper.state.job, keeper.state.incarnation, keeper.state.number, ""),
        done.number, done.kind, keeper.state.sinks, keeper.state.commits.watermark, effect.state,
    )  # fmt: skip
    try:
        heard = await listen(keeper.desk, order, lambda: _shown(keeper, done), keeper.failed)
    except (UserError, BlobBad) as error:
        lost = "Its checkpoint is lost. " if isinstance(error, BlobBad) else ""
        said = f"Commit {done.number} is visible, but its listeners cannot run. {lost}{error}"
        await keeper.handle(PipelineFailed(said))
        return
    keeper.trouble = ""
    await keeper.handle(HooksFinished(done.number, heard))


async def _shown(keeper: "PipelineKeeper", done: Completed) -> tuple[StagedCommittable, ...]:
    """Return what the commit of a checkpoint has shown."""
    content = checkpoint_content.read_for(await keeper.blob_of(done.blob), keeper.state, done)
    return content.to_commit(done.previous)


async def publish(desk: LeaderStore, order: CommitRequest, failed: Callable[[str], None]) -> None:
    """Return once the order is visible, published now or before.

    `failed` gets the reason for each new try.
    """
    ports = desk.ports
    while True:
        desk.check()
        try:
            table = await ports.tables.read(order)
            if table.committed >= order.number:
                return
            desk.check()
            attempt = partial(ports.tables.publish, table.version, order)
            if await ports.durable("table.commit", attempt):
                return
        except (Unavailable, OutcomeUnknown) as error:
            # It may have happened; the next round reads the table before it tries again.
            failed(str(error))
            await ports.clock.sleep(desk.settings.retry_s)


async def finish(
    desk: LeaderStore,
    life: Incarnation,
    rows: Mapping[str, Mapping[str, int]],
    failed: Callable[[str], None],
) -> None:
    """Ask the sinks whether the last commit is allowed, before any of it shows."""
    while rows:
        desk.check()
        try:
            await desk.ports.tables.finish(life, rows)
            return
        except (Unavailable, OutcomeUnknown) as error:
            failed(str(error))
            await desk.ports.clock.sleep(desk.settings.retry_s)


async def listen(
    desk: LeaderStore,
    order: CommitHookRequest,
    staged: Callable[[], Awaitable[tuple[StagedCommittable, ...]]],
    failed: Callable[[str], None],
) -> str:
    """Run the listeners of a commit until all have succeeded; return what they must remember.

    `staged` returns what the commit has shown; `failed` gets the reason for each new try.
    """
    ports, rest_s = desk.ports, desk.settings.retry_s
    while True:
        desk.check()
        try:
            if order.staged is None and await ports.tables.listens(order.life, order.sinks):
                order = replace(order, staged=await staged())
                desk.check()
            attempt = partial(ports.tables.listen, order)
            return await ports.durable("table.listen", attempt)
        except (Unavailable, OutcomeUnknown) as error:
            failed(str(error))
            await ports.clock.sleep(rest_s)
            rest_s = min(2 * rest_s, max(RETRY_S_MAX, desk.settings.retry_s))


async def finish_former(keeper: "PipelineKeeper", effect: FinishFormer) -> None:
    """Make the next commit of a former incarnation, or run its listeners."""
    former = effect.former
    done = former.unheard or former.waiting[0]
    try:
        if former.unheard:
            heard = await _run_former_hooks(keeper, former, done, effect.state)
            moved: Committed | HooksFinished = HooksFinished(done.number, heard)
        else:
            moved = await _commit_former(keeper, former, done)
    except (UserError, BlobBad) as error:
        reason = (
            f"Commit {done.number} of pipeline {former.pipeline} of the former incarnation, which"
            f" is to be finished first, failed. {error}"
        )
        await keeper.handle(PipelineFailed(reason))
        return
    await keeper.handle(FormerMoved(effect.index, moved))


async def _commit_former(keeper: "PipelineKeeper", former: Former, done: Completed) -> Committed:
    content = await _former_content(keeper, former, done)
    names = dict(former.names)
    if done.kind is CheckpointKind.FINAL:
        rows = {names[old]: content.rows(old) for old in names}
        await finish(keeper.desk, keeper.life, rows, keeper.failed)
    mark = later(keeper.state.commits.watermark, content.watermark)
    for sink, staged in by_sink(content.to_commit(done.previous)).items():
        if sink in names:
            user = commit_user(former.job, former.incarnation, former.pipeline, sink)
            order = CommitRequest(
                keeper.life, user, done.number, names[sink], _renamed(staged, names), mark
            )
            keeper.failed(f"sink {names[sink]} has not answered")
            await publish(keeper.desk, order, keeper.failed)
    keeper.failed("")
    return Committed(done.number, content.watermark)


async def _run_former_hooks(
    keeper: "PipelineKeeper", former: Former, done: Completed, state: str
) -> str:
    names = dict(former.names)
    if not await _has_listeners(keeper, keeper.life):
        return state

    async def shown() -> tuple[StagedCommittable, ...]:
        content = await _former_content(keeper, former, done)
        return _renamed(content.to_commit(done.previous), names)

    order = CommitHookRequest(
        keeper.life,
        commit_user(former.job, former.incarnation, former.pipeline, ""),
        done.number, done.kind, tuple(names.values()), keeper.state.commits.watermark, state,
    )  # fmt: skip
    heard = await listen(keeper.desk, order, shown, keeper.failed)
    keeper.failed("")
    return heard


async def _former_content(
    keeper: "PipelineKeeper", former: Former, done: Completed
) -> checkpoint_content.CheckpointContent:
    content = checkpoint_content.read(await keeper.blob_of(done.blob))
    ids = (content.job, content.incarnation, content.pipeline, content.number)
    if ids != (former.job, former.incarnation, former.pipeline, done.number):
        raise BlobBad(
            f"The checkpoint belongs to {ids}, not to commit {done.number} of that incarnation."
        )
    return content


def _renamed(
    staged: tuple[StagedCommittable, ...], names: dict[str, str]
) -> tuple[StagedCommittable, ...]:
    return tuple(replace(s, sink=names[s.sink]) for s in staged if s.sink in names)


def commit_user(job: str, incarnation: str, pipeline: int, sink: str) -> str:
    """Return the name under which a pipeline commits to a sink: the same for every leader.

    The pipeline is part of it, because each pipeline numbers its checkpoints by itself.
    """
    return f"{job}.{incarnation}.{pipeline}.{sink}"


def by_sink(staged: Sequence[StagedCommittable]) -> dict[str, tuple[StagedCommittable, ...]]:
    """Group committables by the sink they are for, in a stable order."""
    sinks = sorted({s.sink for s in staged})
    return {sink: tuple(s for s in staged if s.sink == sink) for sink in sinks}
