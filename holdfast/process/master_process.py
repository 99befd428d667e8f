"""A master as a process: from its config to its exit code."""

import asyncio
import contextlib
import gc
import logging
import os
import secrets
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from holdfast.api.access import Access
from holdfast.api.app import App
from holdfast.api.audit import Audit
from holdfast.api.forward import Forwarder
from holdfast.api.lineage import Lineage
from holdfast.api.observe import ObservedBlobs, ObservedStore
from holdfast.api.sealing import SPEC, check_seal
from holdfast.api.service import Api
from holdfast.api.status_board import StatusBoard
from holdfast.api.table import all_routes
from holdfast.api.ui import UiOrigins, known_masters
from holdfast.config import PREFIX, Config, host_and_port
from holdfast.connect.registry import Registry
from holdfast.errors import HoldfastError, Unavailable, UserError
from holdfast.master.journal import say
from holdfast.master.looks import LookRequests
from holdfast.master.master import Master
from holdfast.master.ports import Ports
from holdfast.model.secret import Secret
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import SinkTables
from holdfast.process.event_trace import Tracer, tracer_from_env
from holdfast.process.failpoints import points_from_env
from holdfast.process.links import PATH, PING_S, PONG_S, WorkerLinks
from holdfast.security.identity import check_listen, client_tls
from holdfast.security.path_policy import PathPolicy
from holdfast.security.seal import Seal
from holdfast.security.token_files import find_token, first_time, join_token, seal_secrets
from holdfast.store.contract import Store
from holdfast.store.open import open_store
from holdfast.wire.codec import FRAME_BYTES_MAX

HEADER_BYTES_MAX = 65_536
CONNECTIONS_MAX = 5_000
KEEP_ALIVE_S = 30
GOODBYE_S = 2
"""How long requests that are being answered may take once the process is asked to stop."""

log = logging.getLogger("holdfast")

STORE_RETRY_S = 1.0
REPORT_HOSTS = PREFIX + "REPORT_HOSTS"
CYCLES_SOUGHT = (20_000, 10, 100)
"""How seldom Python looks for cycles of garbage.  Records make none, and there are so many objects
that with Python's own figures a master of a thousand jobs spends a third of its time looking."""


class Server(uvicorn.Server):
    """A server that leaves signals to its process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signal."""
        yield


def run_master(config: Config, log_file: Path | None = None) -> int:
    """Be a master until SIGTERM or SIGINT, and return the exit code."""
    gc.set_threshold(*CYCLES_SOUGHT)
    return asyncio.run(_serve(config, log_file))


@dataclass
class _Parts:
    """The parts of a master process."""

    store: Store
    tables: SinkTables
    links: WorkerLinks
    master: Master
    api: Api
    server: Server
    tracer: Tracer | None


async def _serve(config: Config, log_file: Path | None) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    check_listen(config)
    port = open_port(*host_and_port(config))
    stopping = asyncio.ensure_future(stop.wait())
    opening = asyncio.ensure_future(_open(config))
    await asyncio.wait((stopping, opening), return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        opening.cancel()
        return 0
    store, token = opening.result(), find_token(config, create=True)
    seal = Seal(seal_secrets(config, token))
    await check_seal(store, seal)
    _show_token(config, token)
    parts = _build(config, store, token, seal, log_file)
    say("master started", name=config.name, url=config.advertise, store=config.store.split(":")[0])
    leading = asyncio.ensure_future(parts.master.run())
    serving = asyncio.ensure_future(parts.server.serve(sockets=[port]))
    watching = asyncio.ensure_future(_watch(parts))
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


async def _watch(parts: _Parts) -> None:
    """Follow what this master does, for the log and the API, until cancelled."""
    api = parts.api
    work = [api.board.run(parts.master), api.catalog.run()]
    if api.lineage:
        work.append(api.lineage.run(api.board))
    await asyncio.gather(*work)


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


def _show_token(config: Config, token: Secret) -> None:
    """Show a token that was created here, once, to the person who started this master."""
    if not first_time(config):
        return
    log.info("the admin's token is in %s, which only this user reads", config.token_file)
    if sys.stderr.isatty():
        sys.stderr.write(f"The admin's token, shown this once: {token.reveal()}\n")


def _build(
    config: Config, store: Store, token: Secret, seal: Seal, log_file: Path | None
) -> _Parts:
    """Put a master together."""
    incarnation = secrets.token_hex(6)
    # Sinks read it where they post; a process has one config.
    os.environ[REPORT_HOSTS] = ",".join(config.report_hosts)
    tracer = tracer_from_env(os.environ, f"{config.name}#{incarnation}")
    registry = Registry.load(config.plugins)
    unseal = partial(seal.open, about=SPEC)
    clock, tables = SystemClock(), SinkTables(registry, unseal)
    points = points_from_env(os.environ, log.warning)
    blobs = ObservedBlobs(open_blobs(config.blobs))
    board = StatusBoard(clock)
    links = WorkerLinks(join_token(config, create=True), say, unseal, board.failed)
    ports = Ports(clock, blobs, tables, links, points, config.settings(), board.wrote)
    if tracer:
        ports, store = tracer.ports(ports), tracer.store(store)
    observed = ObservedStore(store)
    master = Master(config.name, incarnation, observed, ports, config.advertise)
    api = Api(
        master, registry, token, allow_python=config.allow_python,
        refuse_too_large=config.too_large == "refuse", log_file=log_file, board=board,
        environment=config.job_environment, seal=seal,
        confined=PathPolicy(config.file_roots),
        masters=known_masters(config.masters, config.advertise),
    )  # fmt: skip
    if config.openlineage:
        api.lineage = Lineage(config.openlineage, api.sketches)
    audit = Audit(log_file.with_name(f"audit-{config.name}.log") if log_file else None)
    app = build_app(api, links, master, tracer, audit, config.context_path, client_tls(config))
    server = server_for(UiOrigins(app, api.masters), config)
    return _Parts(store, tables, links, master, api, server, tracer)


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


def build_app(
    api: Api,
    links: WorkerLinks,
    master: Master,
    tracer: Tracer | None,
    audit: Audit | None = None,
    context_path: str = "",
    tls: ssl.SSLContext | None = None,
) -> App:
    """Put the one port of a master together."""
    audit = audit or Audit()
    access = Access(api.token, master.store)

    async def link(socket: WebSocket) -> None:
        await links.serve(socket, master, tracer)

    looks = api.looks = LookRequests(links)
    routes = all_routes(api, access, audit, looks)
    forwarder = Forwarder(api.elsewhere, tls or True)
    return App(routes, access, audit, forwarder, (PATH, link), context_path)


def open_port(host: str, port: int) -> socket.socket:
    """Take the port at once, so that a second master on it says so and ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(
            f"This master cannot listen on {host}:{port}: {error.strerror}. Is another one"
            " running there? Give another address with --listen HOST:PORT.",
            code="master.listen",
        ) from error


def server_for(app: ASGIApp, config: Config | None = None) -> Server:
    """Return a server with the settings that links need, and TLS where it is configured."""
    secure: dict[str, Any] = {}
    if config and config.tls_cert:
        secure = {"ssl_certfile": config.tls_cert, "ssl_keyfile": config.tls_key}
    if config and config.tls_client_ca:
        secure |= {"ssl_ca_certs": config.tls_client_ca, "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return Server(
        uvicorn.Config(
            app,
            **secure,
            server_header=False,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
            ws="websockets-sansio",
            ws_ping_interval=PING_S,
            ws_ping_timeout=PONG_S,
            ws_per_message_deflate=False,
            ws_max_size=FRAME_BYTES_MAX,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=GOODBYE_S,
        )
    )
