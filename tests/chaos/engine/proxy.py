"""A network that can be broken: a port that passes bytes on to another, until it does not."""

import asyncio
import contextlib

CHUNK_BYTES = 65_536


class Proxy:
    """Passes bytes both ways.  Frozen, it takes none and loses none; cut, it breaks what is open.

    `target` is the port behind it.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self._refuses = False
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break all connections, and take no new ones."""
        self._refuses = True
        for writer in list(self._open):
            writer.transport.abort()

    def freeze(self) -> None:
        """Let nothing pass, and nobody know."""
        self._flows.clear()

    def heal(self) -> None:
        """Let everything pass again."""
        self._refuses = False
        self._flows.set()

    def close(self) -> None:
        """End it."""
        self.cut()
        self._flows.set()
        if self._server:
            self._server.close()

    async def closed(self) -> None:
        """Wait, after `close`, until nothing is passed on any more."""
        if self._serving:
            await asyncio.wait(self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        me = asyncio.current_task()
        assert me
        self._serving.add(me)
        me.add_done_callback(self._serving.discard)
        try:
            if not self._refuses:
                await self._connect(reader, writer)
        except OSError:
            return  # the other side is down: whoever dialled finds the connection closed
        finally:
            writer.transport.abort()
            self._open.discard(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self.target)
        self._open.add(forth)
        try:
            ways = [
                asyncio.ensure_future(w)
                for w in (self._pass(reader, forth), self._pass(back, writer))
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            forth.transport.abort()
            self._open.discard(forth)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
