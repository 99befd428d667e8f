"""Notices a store that went back in time, as after a failover that lost commits."""

from holdfast.store.contract import HistoryLost
from holdfast.store.limits import closed


class Floor:
    """The highest revision seen: an answer to a call that starts later cannot be below it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen = 0
        self._lost: HistoryLost | None = None
        self.closed = False

    def at(self) -> int:
        """Return the floor of a call that starts now; refuse it if the store is closed or lost."""
        if self.closed:
            raise closed(self._name)
        if self._lost:
            raise self._lost
        return self._seen

    def check(self, revision: int, floor: int) -> int:
        """Return the revision of an answer, if it is not below the floor its call started with."""
        if revision < floor:
            self._lost = HistoryLost(
                f"{self._name} is at revision {revision} after it was at {floor}: a failover or a"
                " restore lost commits. Find out what was lost, then start Holdfast again.",
                code="store.lost",
            )
            raise self._lost
        self._seen = max(self._seen, revision)
        return revision
