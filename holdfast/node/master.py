"""A master as a process: from its config to its exit code."""

import asyncio
import logging
import os
import secrets
import signal
from dataclasses import dataclass
from pathlib import Path

from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError, Unavailable
from holdfast.master.master import Master
from holdfast.master.ports import Ports
from holdfast.node.api import Api
from holdfast.node.blobs import open_blobs
from holdfast.node.clock import SystemClock
from holdfast.node.config import Config, find_token, host_and_port
from holdfast.node.failpoints import points_from_env
from holdfast.node.journal import Journal, say
from holdfast.node.links import Links
from holdfast.node.server import Server, build_app, open_port, server_for
from holdfast.node.tables import SinkTables
from holdfast.node.trace import Tracer, tracer_from_env
from holdfast.store.contract import Store
from holdfast.store.open import open_store

log = logging.getLogger("holdfast")

STORE_RETRY_S = 1.0


def run_master(config: Config, log_file: Path | None = None) -> int:
    """Be a master until SIGTERM or SIGINT, and return the exit code."""
    return asyncio.run(_serve(config, log_file))


@dataclass
class _Parts:
    """What a master process is made of."""

    store: Store
    tables: SinkTables
    links: Links
    master: Master
    journal: Journal
    server: Server
    tracer: Tracer | None


async def _serve(config: Config, log_file: Path | None) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    port = open_port(*host_and_port(config))
    stopping = asyncio.ensure_future(stop.wait())
    opening = asyncio.ensure_future(_open(config))
    await asyncio.wait((stopping, opening), return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        opening.cancel()
        return 0
    parts = _build(config, opening.result(), log_file)
    say("master started", name=config.name, url=config.advertise, store=config.store.split(":")[0])
    leading = asyncio.ensure_future(parts.master.run())
    serving = asyncio.ensure_future(parts.server.serve(sockets=[port]))
    watching = asyncio.ensure_future(parts.journal.run(parts.master))
    everything = (stopping, leading, serving, watching)
    try:
        await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        # First let another lead; only then say goodbye to those who are connected.
        parts.master.stop()
        await asyncio.wait((leading,), timeout=config.lease_s)
        await parts.links.close()
        parts.server.should_exit = True
        await asyncio.wait((serving,), timeout=config.lease_s)
    finally:
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        parts.tables.close()
        await parts.store.close()
    return _code(parts.master, stop.is_set(), (leading, serving, watching))


async def _open(config: Config) -> Store:
    """Open the store, waiting for one that is not there yet."""
    scheme, _, rest = config.store.partition(":")
    if scheme == "sqlite":
        Path(rest.partition("?")[0]).parent.mkdir(parents=True, exist_ok=True)
    said = ""
    while True:
        try:
            return await open_store(config.store)
        except Unavailable as error:
            if str(error) != said:
                said = str(error)
                log.warning("the store does not answer yet: %s", said)
            await asyncio.sleep(STORE_RETRY_S)


def _build(config: Config, store: Store, log_file: Path | None) -> _Parts:
    """Put a master together."""
    token = find_token(config, create=True)
    incarnation = secrets.token_hex(6)
    tracer = tracer_from_env(os.environ, f"{config.name}#{incarnation}")
    registry = Registry.load(config.plugins)
    clock, tables, links = SystemClock(), SinkTables(registry), Links(token, say)
    points = points_from_env(os.environ, log.warning)
    ports = Ports(clock, open_blobs(config.blobs), tables, links, points, config.settings())
    if tracer:
        ports, store = tracer.ports(ports), tracer.store(store)
    master = Master(config.name, incarnation, store, ports, config.advertise)
    journal = Journal(clock)
    api = Api(
        master, registry, journal, token, allow_python=config.allow_python,
        refuse_too_large=config.too_large == "refuse", log_file=log_file,
    )  # fmt: skip
    server = server_for(build_app(api, links, master, tracer))
    return _Parts(store, tables, links, master, journal, server, tracer)


def _code(master: Master, asked: bool, tasks: "tuple[asyncio.Task[None], ...]") -> int:
    """Say how it ended: a bug or a refusal is never a quiet exit."""
    failures = [t.exception() for t in tasks if t.done() and not t.cancelled() and t.exception()]
    for failure in failures:
        log.error("the master failed: %s", failure, exc_info=failure)
    if master.refusal:
        log.error("this master refuses to lead: %s", master.refusal)
    if failures or (master.refusal and not asked):
        return 1
    if not asked:
        raise HoldfastError("The master ended and gave no reason.")
    say("master stopped")
    return 0
