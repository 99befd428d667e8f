"""The master's one port: the API for clients and the links of workers."""

import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI, WebSocket

from holdfast.errors import UserError
from holdfast.master.master import Master
from holdfast.node.api import Api
from holdfast.node.api_routes import routes
from holdfast.node.links import PATH, PING_S, PONG_S, Links
from holdfast.node.trace import Tracer
from holdfast.wire.codec import FRAME_BYTES_MAX

GOODBYE_S = 2
"""How long requests that are being answered may take once the process is told to stop."""


def build_app(api: Api, links: Links, master: Master, tracer: Tracer | None) -> FastAPI:
    """Put the routes of a master together."""
    app = FastAPI(title="Holdfast", openapi_url=None, docs_url=None, redoc_url=None)
    routes(app, api)

    @app.websocket(PATH)
    async def link(socket: WebSocket) -> None:
        await links.serve(socket, master, tracer)

    return app


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


def server_for(app: FastAPI) -> Server:
    """Return a server with the settings that links need."""
    return Server(
        uvicorn.Config(
            app,
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
