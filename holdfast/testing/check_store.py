"""Does a store keep the contract?  `await check_store(open)` says so, in one line.

Each check is an async function named for the promise it checks; a failure says which promise was
broken and what was seen.  A test runner may run them one by one: `STORE_CHECKS` need only the
store, `OUTAGE_CHECKS` need a `Disturb` too, and `run_check` runs one of either.
"""

from collections.abc import Awaitable, Callable

from holdfast.testing import store_commits, store_leases, store_outages, store_watches
from holdfast.testing.store_bench import Bench, Disturb, Open

Check = Callable[[Bench], Awaitable[None]]

LEASE_S = 2.0

STORE_CHECKS: tuple[Check, ...] = (
    *store_commits.CHECKS,
    *store_leases.CHECKS,
    *store_watches.CHECKS,
)
OUTAGE_CHECKS: tuple[Check, ...] = store_outages.CHECKS


async def check_store(
    open: Open, *, disturb: Disturb | None = None, lease_s: float = LEASE_S
) -> None:
    """Run all checks; raise the first failure, an AssertionError that names the broken promise.

    `open` is called for each client and gives clients of the same data, which nobody else may
    change meanwhile; keys outside `check/` are left alone.  `lease_s` is the shortest lease to try.
    """
    for check in (*STORE_CHECKS, *(OUTAGE_CHECKS if disturb else ())):
        await run_check(check, open, disturb=disturb, lease_s=lease_s)


async def run_check(
    check: Check, open: Open, *, disturb: Disturb | None = None, lease_s: float = LEASE_S
) -> None:
    """Run one check with clients of its own, and close them."""
    bench = Bench(open, lease_s, disturb)
    try:
        await check(bench)
    except BaseException as error:
        error.add_note(f"in the store check {getattr(check, '__name__', check)}: {check.__doc__}")
        raise
    finally:
        await bench.close()
