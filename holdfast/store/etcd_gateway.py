"""etcd's JSON gateway over HTTP: several endpoints, time bounds, log-in, and what an error means.

The gateway is part of every etcd since 3.4, so neither protobuf nor gRPC is needed.  All of the
care here is about one question: *can the request have been carried out?*  It cannot if no server
was ever connected, or if the server says that it refused it before trying.  After anything else,
also an error answer, it can: etcd answers "request timed out" and "database space exceeded" for
requests that it has applied.
"""

import asyncio
import io
import json
import socket
import ssl
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.model.secret import Secret
from holdfast.store.contract import Compacted, LeaseLost

CONNECT_S = 1.0
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}

# gRPC status codes.
INVALID, NOT_FOUND, FORBIDDEN, EXHAUSTED, OUT_OF_RANGE, LOGGED_OUT = 3, 5, 7, 8, 11, 16

CONNECT_ERRORS = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
LATER_ERRORS = (aiohttp.ClientError, TimeoutError, ValueError)
"""What can go wrong once connected; ValueError is an answer that is not JSON."""


class Refused(Exception):
    """An error answer of etcd, not yet judged."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def token_is_old(self) -> bool:
        """Say whether the log-in has run out; etcd found that before it did anything else."""
        return self.code == LOGGED_OUT or "invalid auth token" in str(self)

    @property
    def changed_nothing(self) -> bool:
        """Say whether etcd certainly did not carry out the request."""
        return self.token_is_old or "too many requests" in str(self)


class Gateway:
    """Sends requests to whichever endpoint answers."""

    def __init__(
        self,
        endpoints: list[str],
        timeout_s: float,
        tls: ssl.SSLContext | None,
        user: str | None,
        password: Secret | None,
    ) -> None:
        self.endpoints = endpoints
        self.timeout_s = timeout_s
        self._user = user
        self._password = password
        self._token: str | None = None
        self._turn = 0
        self._streams: set[aiohttp.ClientResponse] = set()
        connector = aiohttp.TCPConnector(limit=0, ssl=tls or True, socket_factory=_socket)
        self._session = aiohttp.ClientSession(connector=connector)

    @property
    def name(self) -> str:
        """Return what messages call this etcd."""
        return f"etcd at {', '.join(self.endpoints)}"

    def endpoint(self) -> str:
        """Return the endpoint that answered last, as far as is known."""
        return self.endpoints[self._turn % len(self.endpoints)]

    def leave(self, endpoint: str) -> None:
        """Turn to the next endpoint, unless another call has done so already."""
        if endpoint == self.endpoint():
            self._turn += 1

    async def read(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask something that changes nothing: all endpoints are tried before giving up."""
        last: Exception | None = None
        deadline = asyncio.get_running_loop().time() + self.timeout_s
        # Once more than there are endpoints: a kept connection may have died with its server.
        for _ in range(len(self.endpoints) + 1):
            endpoint = self.endpoint()
            try:
                return await self._post(endpoint, path, body, self.timeout_s / 2)
            except Refused as error:
                self._raise_final(error)
                last = error
            except LATER_ERRORS as error:
                last = error
            self.leave(endpoint)
            if asyncio.get_running_loop().time() > deadline:
                break
        raise Unavailable(f"{self.name} does not answer: {_say(last)}.", code="store.etcd")

    async def write(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for a change.  It is sent once; an endpoint that takes no connection is passed by.

        Raises `Unavailable` if nothing was done, `OutcomeUnknown` if that cannot be known.
        """
        last: Exception | None = None
        for _ in self.endpoints:
            endpoint = self.endpoint()
            try:
                return await self._post(endpoint, path, body, self.timeout_s)
            except CONNECT_ERRORS as error:
                last = error
                self.leave(endpoint)
            except Refused as error:
                self.leave(endpoint)
                self._raise_final(error)
                if not error.changed_nothing:
                    raise self._unknown(error) from error
                last = error
            except LATER_ERRORS as error:
                self.leave(endpoint)
                raise self._unknown(error) from error
        raise Unavailable(f"{self.name} takes no request: {_say(last)}.", code="store.etcd")

    async def stream(
        self, endpoint: str, path: str, body: dict[str, Any], silence_s: float
    ) -> AsyncGenerator[dict[str, Any] | None, None]:
        """Yield the parts of an answer that does not end, and None after each time of silence.

        Lines are cut here, because aiohttp refuses lines as long as a value may be.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        # Without a leader a member receives nothing new; with this header it says so and hangs up.
        headers = await self._headers(endpoint) | {"Grpc-Metadata-hasleader": "true"}
        async with self._session.post(
            endpoint + path, data=_sent(body), headers=headers, timeout=timeout
        ) as answer:
            self._streams.add(answer)
            try:
                async for part in self._parts(answer, silence_s):
                    yield part
            finally:
                self._streams.discard(answer)

    async def _parts(
        self, answer: aiohttp.ClientResponse, silence_s: float
    ) -> AsyncGenerator[dict[str, Any] | None, None]:
        rest = b""
        while not answer.content.at_eof():
            try:
                async with asyncio.timeout(silence_s):
                    rest += await answer.content.readany()
            except TimeoutError:
                yield None
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield self._opened(line)
        if rest:
            yield self._opened(rest)

    async def ask(self, endpoint: str, path: str, body: dict[str, Any]) -> None:
        """Make sure that one endpoint answers."""
        await self._post(endpoint, path, body, self.timeout_s)

    async def _post(
        self, endpoint: str, path: str, body: dict[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        headers = await self._headers(endpoint)
        try:
            return await self._post_once(endpoint, path, body, headers, timeout_s)
        except Refused as error:
            if self._user is None or not error.token_is_old:
                raise
        headers = await self._headers(endpoint)
        return await self._post_once(endpoint, path, body, headers, timeout_s)

    async def _post_once(
        self,
        endpoint: str,
        path: str,
        body: dict[str, Any],
        headers: dict[str, str],
        timeout_s: float,
    ) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        async with self._session.post(
            endpoint + path, data=_sent(body), headers=headers, timeout=timeout
        ) as answer:
            return self._opened(await answer.read())

    def _opened(self, answer: bytes) -> dict[str, Any]:
        try:
            return opened(answer)
        except Refused as error:
            if error.token_is_old:
                self._token = None
            raise

    async def _headers(self, endpoint: str) -> dict[str, str]:
        if self._user is None:
            return {}
        if self._token is None:
            password = self._password.reveal() if self._password else ""
            body = {"name": self._user, "password": password}
            try:
                answer = await self._post_once(
                    endpoint, "/v3/auth/authenticate", body, {}, self.timeout_s
                )
            except Refused as error:
                raise UserError(
                    f"{self.name} does not let user {self._user} in: {error}.", code="store.login"
                ) from error
            self._token = str(answer["token"])
        return {"Authorization": self._token}

    def _raise_final(self, error: Refused) -> None:
        """Raise what trying again cannot change."""
        message = str(error)
        if error.code == NOT_FOUND and "lease" in message:
            raise LeaseLost(message) from error
        if error.code == OUT_OF_RANGE and "compacted" in message:
            raise Compacted(message) from error
        if error.code in (INVALID, FORBIDDEN) and not error.token_is_old:
            raise UserError(
                f"{self.name} refused a request: {message}. Check the user's rights, and the"
                " server's limits --max-request-bytes and --max-txn-ops.",
                code="store.etcd",
            ) from error
        if error.code == EXHAUSTED and "larger than max" in message:
            raise error

    def _unknown(self, error: Exception) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self.name} did not say whether a change was applied: {_say(error)}.",
            code="store.etcd",
        )

    async def close(self) -> None:
        """Release all connections, also those of readers that wait for a stream."""
        for answer in self._streams:
            answer.close()
        await self._session.close()


def _sent(body: dict[str, Any]) -> io.BytesIO:
    """Return a request's bytes as a stream: large ones must not hold up the event loop."""
    return io.BytesIO(json.dumps(body).encode())


def opened(answer: bytes) -> dict[str, Any]:
    """Return the content of one answer.  Raises `Refused` where it is an error."""
    content = json.loads(answer)
    if not isinstance(content, dict):
        raise ValueError("the answer is not from etcd")
    error = content.get("error")
    if error is not None:
        inner = error if isinstance(error, dict) else content
        code = int(inner.get("code") or inner.get("grpc_code") or 0)
        raise Refused(code, str(inner.get("message", error)))
    result = content.get("result", content)
    assert isinstance(result, dict)
    return result


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that finds out within half a minute that its peer is gone.

    A watch sends nothing, so nothing else would tell.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _say(error: Exception | None) -> str:
    return str(error) or type(error).__name__
