"""Finish the commits of a former life: under its identifiers, with the sinks of this life.

A sink of this life has the same table and may have other credentials or another hook: they are
what a person has mended since.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.core.checkpoint import CheckpointKind, Completed
from holdfast.core.commit import Committed, HooksFinished, later
from holdfast.core.effects import FinishFormer
from holdfast.core.former_commits import Former
from holdfast.core.gather import StagedCommittable
from holdfast.core.pipeline import FormerMoved, PipelineFailed
from holdfast.errors import UserError
from holdfast.master import checkpoint_content
from holdfast.master.commit_hooks import listen
from holdfast.master.commit_loop import finish, publish
from holdfast.master.ports import BlobBad, CommitHookRequest, CommitRequest, by_sink, commit_user

if TYPE_CHECKING:
    from holdfast.master.pipeline_keeper import PipelineKeeper


async def finish_former(keeper: "PipelineKeeper", effect: FinishFormer) -> None:
    """Make the next commit of a former life, or have its listeners hear of it."""
    former = effect.former
    done = former.unheard or former.waiting[0]
    try:
        if former.unheard:
            heard = await _listen(keeper, former, done, effect.state)
            moved: Committed | HooksFinished = HooksFinished(done.number, heard)
        else:
            moved = await _commit(keeper, former, done)
    except (UserError, BlobBad) as error:
        reason = (
            f"Commit {done.number} of pipeline {former.pipeline} of the life before, which is to be"
            f" finished first, failed. {error}"
        )
        await keeper.handle(PipelineFailed(reason))
        return
    await keeper.handle(FormerMoved(effect.index, moved))


async def _commit(keeper: "PipelineKeeper", former: Former, done: Completed) -> Committed:
    content = await _content(keeper, former, done)
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


async def _listen(keeper: "PipelineKeeper", former: Former, done: Completed, state: str) -> str:
    names = dict(former.names)
    if not await keeper.listens():
        return state

    async def shown() -> tuple[StagedCommittable, ...]:
        content = await _content(keeper, former, done)
        return _renamed(content.to_commit(done.previous), names)

    order = CommitHookRequest(
        keeper.life,
        commit_user(former.job, former.incarnation, former.pipeline, ""),
        done.number, done.kind, tuple(names.values()), keeper.state.commits.watermark, state,
    )  # fmt: skip
    heard = await listen(keeper.desk, order, shown, keeper.failed)
    keeper.failed("")
    return heard


async def _content(
    keeper: "PipelineKeeper", former: Former, done: Completed
) -> checkpoint_content.Content:
    content = checkpoint_content.read(await keeper.blob_of(done.blob))
    ids = (content.job, content.incarnation, content.pipeline, content.number)
    if ids != (former.job, former.incarnation, former.pipeline, done.number):
        raise BlobBad(f"The checkpoint belongs to {ids}, not to commit {done.number} of that life.")
    return content


def _renamed(
    staged: tuple[StagedCommittable, ...], names: dict[str, str]
) -> tuple[StagedCommittable, ...]:
    return tuple(replace(s, sink=names[s.sink]) for s in staged if s.sink in names)
