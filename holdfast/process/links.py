"""The links between masters and workers: WebSockets that workers dial, one to every master.

A worker sends every message to all masters it reaches, and only the leader uses it; so a new leader
need not find its workers.  Messages may be lost: queues are bounded, and what matters is repeated.
"""

import asyncio
import contextlib
import hmac
import random
import secrets
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from holdfast.errors import UserError
from holdfast.master.master import Master
from holdfast.master_urls import untrusted
from holdfast.model.secret import Secret
from holdfast.process.event_trace import Tracer
from holdfast.security.identity import PROOF, Joining, hello_of_worker, proof_of_master
from holdfast.wire.codec import FRAME_BYTES_MAX, FrameUnreadable, decode, encode
from holdfast.wire.messages import (
    BarrierAck,
    DeployTask,
    Heartbeat,
    Looked,
    TaskReport,
    ToLeader,
    ToWorker,
)

PATH = "/link"
PING_S, PONG_S = 4.0, 2.0
QUEUE_MAX = 1_000
BACKOFF_S = (0.05, 2.0)
NAME_TAKEN, UNREADABLE, STOPPED = 4409, 4400, 4200
NAME_TAKEN_S = 15.0
"""How long a worker believes that another of its name may just be a link that has not ended yet."""

Say = Callable[..., None]


class _NameTaken(Exception):
    """Another running worker has this one's name."""


class Outbox:
    """Frames to be sent, in order.  When it is full the oldest heartbeat goes, else the oldest."""

    def __init__(self) -> None:
        self._frames: deque[tuple[bool, bytes]] = deque()
        self._filled = asyncio.Event()

    def put(self, message: ToWorker | ToLeader) -> None:
        """Add a message."""
        if len(self._frames) >= QUEUE_MAX:
            beat = next((f for f in self._frames if f[0]), self._frames[0])
            self._frames.remove(beat)
        self._frames.append((isinstance(message, Heartbeat), encode(message)))
        self._filled.set()

    async def take(self) -> bytes:
        """Return the next frame, waiting for one."""
        while not self._frames:
            self._filled.clear()
            await self._filled.wait()
        return self._frames.popleft()[1]


@dataclass
class Link:
    """One worker's connection, as a master sees it."""

    socket: WebSocket
    worker: str = ""
    incarnation: str = ""
    outbox: Outbox = field(default_factory=Outbox)


class WorkerLinks:
    """All workers that are connected to this master; the `Workers` port."""

    def __init__(
        self,
        token: Secret,
        say: Say,
        unseal: Callable[[str], str] = str,
        failed: Callable[[TaskReport], None] = lambda _: None,
    ) -> None:
        self._joining = Joining(token)
        self._say = say
        self._unseal = unseal
        self._unsealed = ""
        self._failed = failed
        self._links: dict[str, Link] = {}
        self._receiving: set[asyncio.Task[None]] = set()
        self.looked: Callable[[Looked], None] = lambda _: None
        self.gone: Callable[[str], None] = lambda _: None

    def linked(self, incarnation: str) -> bool:
        """Say whether a worker is connected to this master."""
        return incarnation in self._links

    def send(self, incarnation: str, message: ToWorker) -> None:
        """Send to a worker, if it is connected."""
        link = self._links.get(incarnation)
        if link is None:
            return
        opened = self._opened(message) if isinstance(message, DeployTask) else message
        if opened:
            link.outbox.put(opened)

    def _opened(self, order: DeployTask) -> DeployTask | None:
        """Return an order with what the job file says, which the record keeps sealed."""
        try:
            return replace(order, spec=self._unseal(order.spec))
        except UserError as error:
            if str(error) != self._unsealed:
                self._unsealed = str(error)
                self._say(
                    f"task {order.key.task} cannot be deployed: {error}", job_id=order.key.job
                )
            return None

    async def serve(self, socket: WebSocket, master: Master, tracer: Tracer | None) -> None:
        """Talk with one worker until it is gone.  A worker without the token is refused."""
        nonce = self._joining.nonce_of(socket.headers.get("authorization", ""))
        if nonce is None:
            address = socket.client.host if socket.client else ""
            self._say("a worker without the join token is refused", address=address)
            await socket.close()  # before the connection is accepted: this is answered 403
            return
        proof = self._joining.proof(nonce).encode()
        await socket.accept(headers=[(PROOF.encode(), proof)])
        link = Link(socket)
        sending = asyncio.ensure_future(_send_all(link))
        try:
            await self._receive_all(link, master, tracer)
        finally:
            sending.cancel()
            if self._links.get(link.incarnation) is link:
                del self._links[link.incarnation]
                self._say("worker disconnected", worker=link.worker, incarnation=link.incarnation)
                self.gone(link.incarnation)

    async def close(self) -> None:
        """End every link; workers keep those to the other masters."""
        for link in list(self._links.values()):
            with contextlib.suppress(RuntimeError):
                await link.socket.close(1001)

    async def _receive_all(self, link: Link, master: Master, tracer: Tracer | None) -> None:
        while True:
            try:
                message = decode(await link.socket.receive_bytes())
            except WebSocketDisconnect as end:
                if end.code == STOPPED:
                    self._left(link.incarnation, master)
                return
            except (FrameUnreadable, KeyError) as error:
                self._say(f"a worker's message is refused: {error}", worker=link.worker)
                await link.socket.close(UNREADABLE, str(error)[:120])
                return
            if isinstance(message, Heartbeat) and not link.incarnation:
                other = self._other(message)
                if other:
                    why = f"A worker named {message.worker} is connected already."
                    self._say(why, incarnation=message.incarnation, connected=other.incarnation)
                    await link.socket.close(NAME_TAKEN, why[:120])
                    return
                link.worker, link.incarnation = message.worker, message.incarnation
                self._links[link.incarnation] = link
                self._say("worker connected", worker=link.worker, incarnation=link.incarnation)
            if not link.incarnation or not isinstance(message, ToLeader):
                continue
            if _speaker(message) != (link.worker, link.incarnation):
                why = "A worker spoke for another one."
                self._say(why, worker=link.worker, claimed=_speaker(message)[0])
                await link.socket.close(UNREADABLE, why)
                return
            if isinstance(message, Looked):
                self.looked(message)
                continue
            self._received(link.incarnation, message, master, tracer)

    def _left(self, incarnation: str, master: Master) -> None:
        """Have the leader treat a worker that said goodbye as lost, without waiting for silence.

        To lose a worker costs a job no retry; tasks that it no longer holds would.
        """
        leader = master.leader
        seen = leader.crew.seen.get(incarnation) if leader else None
        if leader and seen:
            seen.spoke_s -= 2 * leader.desk.settings.worker_lost_s

    def _other(self, hello: Heartbeat) -> Link | None:
        """Return the link of another living worker of that name."""
        same = (k for k in self._links.values() if k.worker == hello.worker)
        return next((k for k in same if k.incarnation != hello.incarnation), None)

    def _received(
        self, sender: str, message: ToLeader, master: Master, tracer: Tracer | None
    ) -> None:
        """Give a message to the leader.  One that waits for the store delays no other."""
        leader = master.leader
        if leader is None or not leader.has_time(sender):
            return
        if tracer:
            tracer.received(message)
        for held in message.held if isinstance(message, Heartbeat) else ():
            if held.failure is not None:
                self._failed(held)
        task = asyncio.ensure_future(leader.hear(sender, message))
        self._receiving.add(task)
        task.add_done_callback(self._receiving.discard)
        task.add_done_callback(leader.desk.watch)


def _speaker(message: ToLeader) -> tuple[str, str]:
    """Return the worker that a message says it is from."""
    if isinstance(message, BarrierAck):
        return message.acked.place.worker, message.acked.place.incarnation
    return message.worker, message.incarnation


async def _send_all(link: Link) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await link.socket.send_bytes(await link.outbox.take())


class Dialer:
    """A worker's links to all masters."""

    def __init__(
        self,
        masters: Sequence[str],
        token: Secret,
        hello: Callable[[], Heartbeat],
        received: Callable[[ToWorker], None],
        say: Say,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._masters = masters
        self._tls = tls
        self._token = token
        self._hello = hello
        self._on_message = received
        self._say = say
        self._outboxes: dict[str, Outbox] = {}
        self._sockets: set[ClientConnection] = set()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def send(self, message: ToLeader) -> None:
        """Send a message to every master that is connected.  Any thread may."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.send, message)
            return
        for outbox in self._outboxes.values():
            outbox.put(message)

    @property
    def linked(self) -> bool:
        """Whether any master is connected."""
        return bool(self._sockets)

    async def close(self) -> None:
        """End every link for good, and say that this worker stops."""
        self._closing = True
        for socket in list(self._sockets):
            await socket.close(STOPPED, "the worker stops")

    async def run(self) -> None:
        """Keep all links, until cancelled.  Raises `UserError` if a master refuses this worker."""
        keeping = [asyncio.ensure_future(self._keep(url)) for url in self._masters]
        try:
            await asyncio.gather(*keeping)
        finally:
            for task in keeping:
                task.cancel()

    async def _keep(self, url: str) -> None:
        backoff_s, said = BACKOFF_S[0], ""
        taken_s: float | None = None
        while True:
            begun_s = self._loop.time()
            try:
                reason = await self._talk(url)
                taken_s = None
            except _NameTaken as error:
                reason, taken_s = str(error), begun_s if taken_s is None else taken_s
                if begun_s - taken_s > NAME_TAKEN_S:
                    raise UserError(f"{reason} Give this one another name.") from error
            except InvalidStatus as error:
                _check_token(url, error)
                reason = str(error)
            except (OSError, WebSocketException, TimeoutError) as error:
                reason = untrusted(str(error)) or str(error) or type(error).__name__
            if self._closing:
                return
            if self._loop.time() - begun_s > BACKOFF_S[1]:
                backoff_s, said = BACKOFF_S[0], ""
            if reason != said:
                said = reason
                self._say(f"no link to {url}: {reason}", master=url)
            await asyncio.sleep(backoff_s * (0.5 + random.random()))
            backoff_s = min(2 * backoff_s, BACKOFF_S[1])

    async def _talk(self, url: str) -> str:
        """Connect to a master and talk until the link ends; return why it did."""
        address = "ws" + url.removeprefix("http").rstrip("/") + PATH
        nonce = secrets.token_hex(16)
        async with connect(
            address,
            additional_headers={"Authorization": hello_of_worker(self._token, nonce)},
            ssl=self._tls if address.startswith("wss:") else None,
            compression=None,
            max_size=FRAME_BYTES_MAX,
            open_timeout=5,
            ping_interval=PING_S,
            ping_timeout=PONG_S,
            proxy=None,
        ) as socket:
            shown = socket.response.headers.get(PROOF, "") if socket.response else ""
            if not hmac.compare_digest(shown, proof_of_master(self._token, nonce)):
                return "the process that answers there does not know the join token"
            self._say(f"linked to {url}", master=url)
            self._sockets.add(socket)
            outbox = self._outboxes[url] = Outbox()
            outbox.put(self._hello())
            sending = asyncio.ensure_future(_pour(socket, outbox))
            try:
                async for frame in socket:
                    assert isinstance(frame, bytes)
                    self._on_message(decode(frame))  # type: ignore[arg-type]
            except FrameUnreadable as error:
                return str(error)
            except ConnectionClosed:
                pass  # the reason is returned below
            finally:
                sending.cancel()
                self._sockets.discard(socket)
                del self._outboxes[url]
            why = socket.close_reason or "the connection was closed"
            if socket.close_code == NAME_TAKEN:
                raise _NameTaken(why)
            return why


def _check_token(url: str, error: InvalidStatus) -> None:
    """Raise where trying again does not help."""
    if error.response.status_code in (401, 403):
        raise UserError(
            f"Master {url} refuses this worker: its token is another one. Give both the same"
            " token (token_file, or HOLDFAST_TOKEN), or the worker the masters' join_token.",
            code="link.token",
        ) from error


async def _pour(socket: ClientConnection, outbox: Outbox) -> None:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await socket.send(await outbox.take())
