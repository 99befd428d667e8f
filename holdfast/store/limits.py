"""What every store refuses before it sends anything, so that all of them take the same."""

from collections.abc import Iterable, Sequence

from holdfast.errors import Unavailable, UserError
from holdfast.store.contract import (
    COMMIT_BYTES_MAX,
    COMMIT_KEYS_MAX,
    KEY_BYTES_MAX,
    VALUE_BYTES_MAX,
    Delete,
    Guard,
    Put,
)


def check_key(key: str) -> int:
    """Refuse a key that some store could not hold; return its length in bytes."""
    if not key:
        raise UserError("A key of the store is empty. Give it a name.", code="store.key")
    return check_prefix(key)


def check_prefix(prefix: str) -> int:
    """Refuse a prefix that no key can start with; return its length in bytes."""
    try:
        length = len(prefix.encode())
    except UnicodeEncodeError:
        raise UserError(
            f"The key {prefix!a} holds half a character (a lone surrogate), which no store can"
            " keep. Use whole characters.",
            code="store.key",
        ) from None
    if "\0" in prefix:
        raise UserError(
            f"The key {prefix!a} holds the character NUL, which PostgreSQL cannot keep. Remove it.",
            code="store.key",
        )
    if length > KEY_BYTES_MAX:
        raise UserError(
            f"The key {prefix[:40]!a}... has {length:,} bytes; the store takes"
            f" {KEY_BYTES_MAX:,}. Use a shorter name.",
            code="store.key",
        )
    return length


def check_commit(guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> None:
    """Refuse a commit that some store could not take."""
    total = sum(check_key(guard.key) for guard in guards)
    total += sum(_check_change(change) for change in changes)
    if total > COMMIT_BYTES_MAX:
        raise UserError(
            f"One commit holds {total:,} bytes; the store takes {COMMIT_BYTES_MAX:,}."
            " Put large content into a blob, or split the commit.",
            code="store.commit",
        )
    if max(len(guards), len(changes)) > COMMIT_KEYS_MAX:
        raise UserError(
            f"One commit has {len(guards)} guards and {len(changes)} changes; the store takes"
            f" {COMMIT_KEYS_MAX} of each. Split the commit.",
            code="store.commit",
        )
    _check_named_once(change.key for change in changes)


def closed(what: str) -> Unavailable:
    """Return the error of a call on a store that was closed."""
    return Unavailable(f"{what} was closed by this process. Open it again.", code="store.closed")


def _check_change(change: Put | Delete) -> int:
    length = check_key(change.key)
    if isinstance(change, Delete):
        return length
    if len(change.value) > VALUE_BYTES_MAX:
        raise UserError(
            f"The value of {change.key!a} has {len(change.value):,} bytes; the store takes"
            f" {VALUE_BYTES_MAX:,}. Put large content into a blob.",
            code="store.value",
        )
    return length + len(change.value)


def _check_named_once(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise AssertionError(f"one commit changes {key!a} twice, and the order is undefined")
        seen.add(key)
