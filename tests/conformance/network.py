"""A network that can be broken: a proxy in front of a server, on a port of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.conformance.servers import Server


class Proxy:
    """Passes bytes between clients and a server; loses answers, delays them, cuts connections."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.port = 0
        self.losing = False
        self.delay_s = 0.0
        self.lost_bytes = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Proxy"]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            self.cut()
            if self._serving:
                await asyncio.wait(self._serving)
            await listener.wait_closed()

    def cut(self) -> None:
        """Break all connections, on both sides, in the middle of whatever they carry."""
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._open.add(writer)
        try:
            await self._connect(reader, writer)
        except OSError:
            # The server is down: the client finds its connection closed.
            return
        finally:
            writer.transport.abort()
            self._open.discard(writer)
            self._serving.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self.server_port)
        self._open.add(forth)
        try:
            await asyncio.gather(self._requests(reader, forth), self._answers(back, writer))
        finally:
            forth.transport.abort()
            self._open.discard(forth)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.losing:
                self.lost_bytes += len(data)
                continue
            await asyncio.sleep(self.delay_s)
            writer.write(data)
            await writer.drain()
        writer.transport.abort()


class Disturbance:
    """A server behind a proxy, as the kit breaks it."""

    answers_while_stopped = False

    def __init__(self, server: Server, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy

    async def stop(self) -> None:
        await asyncio.to_thread(self.server.stop)

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)

    async def lose_answers(self) -> None:
        self.proxy.losing = True

    async def cut(self) -> None:
        self.proxy.cut()

    async def heal(self) -> None:
        assert self.proxy.lost_bytes > 0, "no answer was lost"
        self.proxy.losing = False
        # Half an answer may be missing on these.
        self.proxy.cut()
