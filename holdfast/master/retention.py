"""How many lines of history are kept of jobs whose records are deleted."""

from holdfast.master.event_log import PAST
from holdfast.master.leader_store import LeaderStore
from holdfast.store.contract import COMMIT_KEYS_MAX, Delete, Guard

HISTORY = "history/"


async def trim(desk: LeaderStore) -> None:
    """Forget the oldest entries beyond the number to keep."""
    entries = sorted(await desk.read_range(HISTORY), key=lambda i: i.created)
    old, each = entries[: max(0, len(entries) - desk.settings.history)], COMMIT_KEYS_MAX // 2 - 1
    for some in (old[at : at + each] for at in range(0, len(old), each)):
        guards = [Guard(i.key, i.revision) for i in some]
        keys = [k for i in some for k in (i.key, PAST + i.key.removeprefix(HISTORY))]
        await desk.write(guards, [Delete(k) for k in keys], some[0].key, "history.trim")
