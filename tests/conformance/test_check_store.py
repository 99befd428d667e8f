"""The kit finds stores that are broken: each of these breaks one promise."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from holdfast.errors import UserError
from holdfast.store.contract import Change, Delete, Guard, Item, LeaseLost, Put, Store
from holdfast.store.memory import Memory, MemoryStore
from holdfast.testing import store_bench, store_commits, store_leases, store_watches
from holdfast.testing.check_store import Check, run_check


class NoGuards(MemoryStore):
    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        return await super().commit([], changes)


class OneGuard(MemoryStore):
    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        return await super().commit(guards[:1], changes)


class LostUpdates(MemoryStore):
    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        if await super().commit(guards, []) is None:
            return None
        await asyncio.sleep(0)
        return await super().commit([], changes)


class OneRevisionEach(MemoryStore):
    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        revision = await super().commit(guards, [])
        for change in changes if revision is not None else ():
            revision = await super().commit([], [change])
        return revision


class OldReads(MemoryStore):
    async def get(self, key: str) -> Item | None:
        item = await super().get(key)
        made = [c for changes in self._memory.history[:-1] for c in changes if c.key == key]
        return made[-1].item if item and made else item


class KeepsForgotten(MemoryStore):
    async def keep_lease(self, lease: int) -> None:
        try:
            await super().keep_lease(lease)
        except LeaseLost:
            return


class NeverLapses(MemoryStore):
    async def grant_lease(self, ttl_s: float) -> int:
        return await super().grant_lease(ttl_s + 1_000)


class LapsesEarly(MemoryStore):
    async def grant_lease(self, ttl_s: float) -> int:
        return await super().grant_lease(ttl_s / 2)


class SkipsOne(MemoryStore):
    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        async for made in super().watch(prefix, after):
            if made[0].revision != after + 1:
                yield made


class TearsRevisions(MemoryStore):
    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        async for made in super().watch(prefix, after):
            for change in reversed(made):
                yield [change]


class SortsBadly(MemoryStore):
    async def range(self, prefix: str) -> tuple[list[Item], int]:
        items, revision = await super().range(prefix)
        return sorted(items, key=lambda item: item.key.lower()[::-1]), revision


class TakesNul(MemoryStore):
    async def get(self, key: str) -> Item | None:
        try:
            return await super().get(key)
        except UserError:
            return None


class StaysOpen(MemoryStore):
    async def close(self) -> None:
        return


BROKEN: list[tuple[type[MemoryStore], Check]] = [
    (NoGuards, store_commits.creation_happens_once),
    (OneGuard, store_commits.a_failed_guard_changes_nothing),
    (LostUpdates, store_commits.no_update_is_lost_between_clients),
    (OneRevisionEach, store_commits.one_commit_is_one_revision),
    (OldReads, store_commits.a_read_sees_what_was_answered),
    (SortsBadly, store_commits.one_commit_is_one_revision),
    (TakesNul, store_commits.names_no_store_can_keep_are_refused),
    (StaysOpen, store_commits.closing_is_final_and_repeatable),
    (KeepsForgotten, store_leases.a_lapsed_lease_takes_its_keys),
    (NeverLapses, store_leases.a_paused_leader_is_fenced),
    (LapsesEarly, store_leases.a_lease_does_not_lapse_early),
    (SkipsOne, store_watches.a_watch_resumes_after_any_revision),
    (TearsRevisions, store_watches.a_watch_tells_each_change_in_order),
]


@pytest.mark.parametrize(("broken", "check"), BROKEN, ids=lambda one: one.__name__)
def test_the_kit_finds(
    broken: type[MemoryStore], check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_bench, "PATIENCE_S", 1.5)
    memory = Memory()

    async def open_() -> Store:
        return broken(memory)

    with pytest.raises(AssertionError, match="broken promise") as found:
        asyncio.run(run_check(check, open_, lease_s=0.6))
    assert check.__name__ in found.value.__notes__[0]
