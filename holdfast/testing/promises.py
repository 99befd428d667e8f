"""How a check says that a promise is broken: with the promise, and what was seen instead."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 20.0
"""How long a check waits for what must come, and how long one call may take in an outage."""


def require(promise: str, kept: bool, seen: object = None) -> None:
    """Fail with the promise that was broken, and what was seen instead."""
    if not kept:
        raise AssertionError(f"broken promise: {promise}; seen: {seen!r}")


def same(promise: str, seen: object, wanted: object) -> None:
    """Fail unless what was seen is what was promised."""
    if seen != wanted:
        raise AssertionError(f"broken promise: {promise}; wanted: {wanted!r}; seen: {seen!r}")


def must(value: T | None) -> T:
    """Return a value that cannot be None here."""
    require("a commit whose guards hold is applied", value is not None)
    assert value is not None
    return value


async def refused(promise: str, kind: type[Exception], call: Awaitable[object]) -> None:
    """Fail unless a call raises an error of a kind."""
    try:
        result = await call
    except kind:
        return
    raise AssertionError(f"broken promise: {promise}; seen: {result!r} and no {kind.__name__}")


async def eventually(promise: str, ask: Callable[[], Awaitable[bool]]) -> None:
    """Fail unless something becomes so in a bounded time."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await ask():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"broken promise: {promise}; not so after {PATIENCE_S} s") from None
