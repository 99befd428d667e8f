"""Terms as people read them: which leadership this is, counted from 1.

What fences is the revision at which a master was elected (`Desk.term`).  It leaps with every write
between two elections, so people are shown a count of those who led instead.  Each leader writes its
own beside the ones before it as it begins; nothing is decided by it.
"""

import logging

import msgspec

from holdfast.store.contract import Item

log = logging.getLogger("holdfast")

TERMS = "terms"
KEPT = 50
"""So many are remembered: what an earlier leader has begun is told under its number."""


class Terms(msgspec.Struct, frozen=True):
    """How many have led, and the terms of the latest of them, the last one last."""

    count: int = 0
    latest: tuple[int, ...] = ()

    def numbers(self) -> dict[int, int]:
        """Return the number of each term that is known."""
        first = self.count - len(self.latest) + 1
        return {term: first + place for place, term in enumerate(self.latest)}

    def then(self, term: int) -> "Terms":
        """Return it with one more leadership."""
        return Terms(self.count + 1, (*self.latest, term)[-KEPT:])


def read(item: Item | None) -> Terms:
    """Return what the store says; one that cannot be read is begun anew."""
    if item is None:
        return Terms()
    try:
        return msgspec.json.decode(item.value, type=Terms)
    except msgspec.DecodeError as error:
        log.warning("terms are counted from 1 again: %s cannot be read: %s", TERMS, error)
        return Terms()
