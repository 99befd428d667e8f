"""The jobs that are over, in memory: read once, then kept up to date by watching the store.

A thousand ended jobs are thousands of kilobytes in the store; to read them for each page of a list
would make every list slow.
"""

import asyncio
import contextlib

from holdfast.core.job import JobRecord
from holdfast.errors import Unavailable
from holdfast.master.records import RecordUnreadable, decode
from holdfast.master.retention import HISTORY
from holdfast.store.contract import Compacted, Item, Store

AGAIN_S = 1.0


class EndedJob:
    """A job that is over, or the reason why its record cannot be read."""

    __slots__ = ("created", "damage", "id", "job")

    def __init__(self, item: Item) -> None:
        self.id = item.key.split("/")[1]
        self.created = item.created
        self.damage = ""
        self.job: JobRecord | None = None
        try:
            self.job = decode(JobRecord, item.value)
        except RecordUnreadable as error:
            self.damage = str(error)


class EndedJobs:
    """What stayed of ended jobs, by key.  Until `run` has read them, every look reads the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[str, EndedJob] = {}
        self._followed = False
        self.version = 0

    async def run(self) -> None:
        """Follow the store until cancelled."""
        while True:
            try:
                await self._follow()
            except (Compacted, Unavailable):
                self._followed = False
            await asyncio.sleep(AGAIN_S)

    async def entries(self) -> list[EndedJob]:
        """Return all ended jobs."""
        if not self._followed:
            await self._read()
        return list(self._entries.values())

    async def _read(self) -> int:
        items, revision = await self._store.range(HISTORY)
        self._entries = {i.key: EndedJob(i) for i in items}
        self.version += 1
        return revision

    async def _follow(self) -> None:
        revision = await self._read()
        self._followed = True
        async with contextlib.aclosing(self._store.watch(HISTORY, revision)) as changes:
            async for together in changes:
                for change in together:
                    self._entries.pop(change.key, None)
                    if change.item:
                        self._entries[change.key] = EndedJob(change.item)
                self.version += 1
