"""Publish one commit to one table, whoever else may be trying to.

The question "have we committed this already?" and the commit itself use the same version of the
table: if the table moved in between, both start again.  So a paused former leader that wakes up in
the middle, and a successor that repeats its work, add every row once between them.
"""

from collections.abc import Callable, Mapping
from functools import partial

from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import CommitRequest, Incarnation


async def publish(desk: LeaderStore, order: CommitRequest, failed: Callable[[str], None]) -> None:
    """Return once the order is visible, by us or by whoever did it before.

    `failed` hears why it has to be tried again.
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
    """Ask the sinks whether the last commit may be made, before any of it shows."""
    while rows:
        desk.check()
        try:
            await desk.ports.tables.finish(life, rows)
            return
        except (Unavailable, OutcomeUnknown) as error:
            failed(str(error))
            await desk.ports.clock.sleep(desk.settings.retry_s)
