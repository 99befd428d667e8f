"""Have the listeners of a commit hear of it, for as long as that takes: the commit stays.

They need what the commit has shown, which its checkpoint holds; that is read again only if there
is anybody to tell.  So a checkpoint is kept until its listeners have run.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from holdfast.core.gather import StagedCommittable
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import CommitHookRequest

RETRY_S_MAX = 5.0
"""A listener that fails is asked less and less often: it may be somebody's web server."""


async def listen(
    desk: LeaderStore,
    order: CommitHookRequest,
    staged: Callable[[], Awaitable[tuple[StagedCommittable, ...]]],
    failed: Callable[[str], None],
) -> str:
    """Return what listeners must remember once all of them have heard of a commit.

    `staged` returns what the commit has shown; `failed` hears why one has to be asked again.
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
