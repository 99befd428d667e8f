"""The master's one port: the API for clients and the links of workers."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from holdfast.api.access import Access
from holdfast.api.app import App
from holdfast.api.audit import Audit
from holdfast.api.forward import Forwarder
from holdfast.api.service import Api
from holdfast.api.table import all_routes
from holdfast.config import Config
from holdfast.errors import UserError
from holdfast.master.looks import Looks
from holdfast.master.master import Master
from holdfast.process.event_trace import Tracer
from holdfast.process.links import PATH, PING_S, PONG_S, Links
from holdfast.wire.codec import FRAME_BYTES_MAX

HEADER_BYTES_MAX = 65_536
CONNECTIONS_MAX = 5_000
KEEP_ALIVE_S = 30
GOODBYE_S = 2
"""How long requests that are being answered may take once the process is told to stop."""


def build_app(
    api: Api,
    links: Links,
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

    routes = all_routes(api, access, audit, Looks(links))
    forwarder = Forwarder(api.elsewhere, tls or True)
    return App(routes, access, audit, forwarder, (PATH, link), context_path)


class Server(uvicorn.Server):
    """A server that leaves signals to its process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signal."""
        yield


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
