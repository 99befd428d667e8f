"""The folder of a run in this process, and what killed runs have left in theirs.

A run keeps its store in a scratch folder.  A later run that finds one which no process holds leads
it for a moment, as any new leader would, and cancels its jobs: a checkpoint that was complete is
committed, and whatever else was staged is removed.  It may be killed at any point; the next run
continues.
"""

import asyncio
import logging
import secrets
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.files import state_dir
from holdfast.master.leader import Leader
from holdfast.master.leader_store import LEADER
from holdfast.master.master import Master
from holdfast.master.ports import MasterSettings, Ports
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import SinkTables
from holdfast.process.failpoints import NoPoints
from holdfast.store.open import open_store
from holdfast.store.sqlite_file import network_kind
from holdfast.wire.messages import ToWorker

FINISH_S_MAX = 5.0

STORE = "store.db"
BLOBS = "blobs"
LOOK_S = 0.02
RUN_S_MAX = 30.0
"""How long to try with one dead run: its sinks may be out of reach just now."""

SETTINGS = MasterSettings(
    lease_s=30.0, campaign_s=0.05, worker_lost_s=3600.0, tombstone_s=0.0, retry_s=0.05,
    saves=False,
)  # fmt: skip

log = logging.getLogger("holdfast")


async def recover_abandoned_runs(registry: Registry) -> None:
    """Finish and remove every dead run that began in the directory we are in."""
    for scratch in await asyncio.to_thread(state_dir.adopt_runs):
        try:
            async with asyncio.timeout(RUN_S_MAX):
                await _finish(scratch.run_folder(), registry)
        except (HoldfastError, OSError) as error:
            said = str(error) or type(error).__name__
            log.warning("A run that was killed has left something in %s: %s", scratch.path, said)
            scratch.release()
        except BaseException:
            scratch.release()
            raise
        else:
            scratch.remove()


async def _finish(folder: Path, registry: Registry) -> None:
    """Lead one dead run's store until none of its jobs is left."""
    if not (folder / STORE).exists():
        return  # it was killed before it had a job
    async with AsyncExitStack() as cleanup:
        store = await open_store(f"sqlite:{folder / STORE}")
        cleanup.push_async_callback(store.close)
        held = await store.get(LEADER)
        if held and held.lease is not None:
            # We have the lock of its folder, so the process that holds this lease is dead.
            await store.revoke_lease(held.lease)
        blobs = open_blobs(str(folder / BLOBS))
        cleanup.callback(blobs.close)
        tables = SinkTables(registry)
        cleanup.callback(tables.close)
        ports = Ports(SystemClock(), blobs, tables, _Nobody(), NoPoints(), SETTINGS)
        master = Master("heir", secrets.token_hex(4), store, ports)
        serving = asyncio.ensure_future(master.run())
        cleanup.push_async_callback(_stop, master, serving)
        leader = await _elected(master, serving)
        for job in list(leader.jobs):
            log.info("job %s was killed while it ran; what it owes is done now", job)
            await _cancel(leader, job)
        while leader.jobs:
            _check(master, serving)
            await asyncio.sleep(LOOK_S)
        for job, reason in leader.quarantined.items():
            log.warning("job %s was killed, and what it staged stays: %s", job, reason)


async def _cancel(leader: Leader, job: str) -> None:
    """Cancel a job, unless it comes to its end by itself: one that owed only its last commit does
    so as soon as it is led, and its record may go while we ask."""
    while job in leader.jobs:
        try:
            await leader.cancel(job)
            return
        except UserError:
            await asyncio.sleep(LOOK_S)


async def _elected(master: Master, serving: "asyncio.Task[None]") -> Leader:
    while not (master.leader and master.leader.loaded):
        _check(master, serving)
        await asyncio.sleep(LOOK_S)
    return master.leader


def _check(master: Master, serving: "asyncio.Task[None]") -> None:
    if serving.done():
        serving.result()
        raise Unavailable(master.refusal or "The master of a dead run ended.")


async def _stop(master: Master, serving: "asyncio.Task[None]") -> None:
    master.stop()
    await asyncio.wait([serving], timeout=5)


class _Nobody:
    """The way to the workers of a dead run: there are none."""

    def send(self, incarnation: str, message: ToWorker) -> None:
        """Drop a message."""


async def let_finish(finishing: "asyncio.Task[None]") -> None:
    """Wait a while for what dead runs have left; what is not done now the next run does."""
    await asyncio.wait([finishing], timeout=FINISH_S_MAX)
    finishing.cancel()
    await asyncio.wait([finishing])
    if not finishing.cancelled() and finishing.exception():
        log.warning("what dead runs have left stays", exc_info=finishing.exception())


def claim_folder(cleanup: AsyncExitStack, owes: Callable[[], bool]) -> Path:
    """Return a folder for the store, which must be a local one for SQLite.

    It is gone when this run ends, unless something is owed then: that is left to the next run.
    """
    scratch = state_dir.claim_scratch()
    cleanup.callback(lambda: scratch.release() if owes() else scratch.remove())
    folder = scratch.run_folder()
    if network_kind(scratch.path):
        folder.symlink_to(tempfile.mkdtemp(prefix="holdfast-"))
    else:
        folder.mkdir()
    scratch.mark_run()
    return folder
