"""A standby forwards requests to the leader, so that any master can be asked."""

from collections.abc import Awaitable, Callable
from ssl import SSLContext

import httpx2
from starlette.requests import Request
from starlette.responses import Response

FORWARDED = "holdfast-forwarded"
ANSWER_S = 30.0
HANDED_ON = ("authorization", "content-type", "accept", "origin", "host", "sec-fetch-site")
RETURNED = ("content-type", "www-authenticate", "retry-after", "allow")

Find = Callable[[], Awaitable[str]]
"""Says where the leader is reached; "" if this master leads or no master does."""


class Forwarder:
    """The way to the leader."""

    def __init__(self, find: Find, tls: SSLContext | bool = True) -> None:
        self._find = find
        self._tls = tls
        self._http: httpx2.AsyncClient | None = None

    async def forward(self, request: Request, body: bytes) -> Response | None:
        """Return the leader's answer; None if this master should answer as well as it can."""
        leader = await self._find()
        if not leader:
            return None
        query = f"?{request.url.query}" if request.url.query else ""
        headers = {k: v for k, v in request.headers.items() if k in HANDED_ON}
        headers[FORWARDED] = "1"
        try:
            answer = await self._client().request(
                request.method,
                f"{leader.rstrip('/')}{request.url.path}{query}",
                content=body,
                headers=headers,
            )
        except httpx2.TransportError:
            return None  # it may just have died; what the store knows is as true
        kept = {k: v for k, v in answer.headers.items() if k in RETURNED}
        return Response(answer.content, answer.status_code, kept)

    async def close(self) -> None:
        """Close the connections."""
        if self._http:
            await self._http.aclose()

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            timeout = httpx2.Timeout(ANSWER_S, connect=2.0)
            self._http = httpx2.AsyncClient(timeout=timeout, verify=self._tls, trust_env=False)
        return self._http
