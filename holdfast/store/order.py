"""The order of keys and of changes, the same in every store."""

from collections.abc import Iterable
from itertools import groupby

from holdfast.store.contract import Change

LAST = chr(0x10FFFF)
SURROGATES = range(0xD800, 0xE000)


def prefix_end(prefix: str) -> str | None:
    """Return the first text after all that start with a prefix, or None if there is no such text.

    Text sorts by code point in Python and by UTF-8 bytes in the stores; the two orders are one.
    """
    stem = prefix.rstrip(LAST)
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if following in SURROGATES:
        following = SURROGATES.stop
    return stem[:-1] + chr(following)


def by_revision(changes: Iterable[Change]) -> list[list[Change]]:
    """Return changes as a watch yields them: one list a revision, sorted by key."""
    ordered = sorted(changes, key=lambda change: (change.revision, change.key))
    return [list(group) for _, group in groupby(ordered, key=lambda change: change.revision)]
