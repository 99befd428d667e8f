"""Serve the declared paths: first who asks, then what, and only then the answer.

Without a token a client learns nothing, not even which paths exist.  Bodies are bounded before they
are read.  What changes something is written to the audit log before and after.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from holdfast.api.access import Access, WrongTokens
from holdfast.api.audit import Audit
from holdfast.api.forward import FORWARDED, Forwarder
from holdfast.api.problems import problem_of
from holdfast.api.route import NOBODY, ApiRequest, Caller, Permission, Route, TextAnswer, pattern_of
from holdfast.errors import HoldfastError, Unavailable, UserError

BODY_BYTES_MAX = 1_048_576
BODY_S_MAX = 30.0
"""How long the parts of a body may take to come."""

FOLLOWS = "holdfast-follows"
"""A client with this header finds the leader by itself: a standby answers where it is (421)."""

SAFE = ("GET", "HEAD")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_BAD_PATH = re.compile(r"[^\x21-\x7e]|\\|//|(?:^|/)\.\.?(?:/|$)")


class WorkerSocket(Protocol):
    """The master's end of the links to workers."""

    def __call__(self, socket: WebSocket) -> Awaitable[None]:
        """Talk with one worker until it is gone."""


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A request on its way through the checks."""

    request: Request
    path: str
    route: Route | None
    parameters: Mapping[str, str]
    allowed: tuple[str, ...] = ()
    who: Caller = NOBODY


class App:
    """The one port of a master, as an ASGI application."""

    def __init__(
        self,
        routes: Iterable[Route],
        access: Access,
        audit: Audit,
        forwarder: Forwarder,
        link: tuple[str, WorkerSocket] | None = None,
        context_path: str = "",
    ) -> None:
        self.routes = tuple(routes)
        self.access = access
        self.audit = audit
        self.forwarder = forwarder
        self._link = link
        self._context = "/" + context_path.strip("/") if context_path.strip("/") else ""
        self._tries = WrongTokens()
        self._exact = {r.path: r.path for r in self.routes if not r.parameters}
        self._patterns = [
            (compiled(path), path) for path in {r.path: 0 for r in self.routes if r.parameters}
        ]
        self._methods: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            methods = self._methods.setdefault(route.path, {})
            assert route.method not in methods, f"{route.method} {route.path} is declared twice"
            methods[route.method] = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one worker's link."""
        if scope["type"] == "websocket":
            socket = WebSocket(scope, receive, send)
            if self._link and scope["path"] == self._link[0]:
                await self._link[1](socket)
            else:
                await socket.close()
        elif scope["type"] == "http":
            request = Request(scope, receive)
            with contextlib.suppress(ClientDisconnect):
                response = await self._answer(request)
                await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        what = f"{request.method} {request.url.path}"
        try:
            return await self._checked(self._call(request))
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001  every failure becomes an answer, and a log line
            status, problem = problem_of(error, what)
            return _response(status, problem, _extra(request, status, error))

    async def _checked(self, call: CheckedCall) -> Response:
        """Check a request and answer it, or raise what is wrong with it."""
        route, request = call.route, call.request
        if route is None or route.permission is not Permission.PUBLIC:
            call = replace(call, who=await self._who(request))
        if _BAD_PATH.search(call.path):
            raise UserError("Invalid path.", code="path")
        if route is None:
            raise _unknown(call)
        for name, value in call.parameters.items():
            if not pattern_of(name).fullmatch(value):
                raise UserError(f"Invalid {name} in the path.", code="path")
        if not call.who.may(route.permission):
            self.audit.refused(call.who, _address(request), route, call.parameters, 403)
            raise UserError(
                f"A {call.who.role} may not do this; it needs the permission {route.permission}.",
                code="token.role",
            )
        _check_scope(call.who, route, call.parameters)
        if request.method not in SAFE:
            _check_origin(request)
        if not route.order:
            return await self._served(route, request, call)
        return await self._audited(route, request, call)

    async def _audited(self, route: Route, request: Request, call: CheckedCall) -> Response:
        """Serve an order between two lines of the audit log; the first is there before it is."""
        entry = self.audit.asked(call.who, _address(request), route, call.parameters)
        try:
            response = await self._served(route, request, call)
        except BaseException as error:
            status, problem = (
                problem_of(error, "order") if isinstance(error, HoldfastError) else (500, None)
            )
            self.audit.answered(entry, status, problem.code if problem else type(error).__name__)
            raise
        self.audit.answered(entry, response.status_code, "")
        return response

    async def _served(self, route: Route, request: Request, call: CheckedCall) -> Response:
        body = await _body(request, route)
        follows = FOLLOWS in request.headers or FORWARDED in request.headers
        if route.leads and not follows:
            forwarded = await self.forwarder.forward(request, body)
            if forwarded is not None:
                return forwarded
        raw = dict(parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=100))
        ask = ApiRequest(
            call.who, call.parameters, _query(route, raw), _decoded(route, body), raw,
            request.headers.get("content-type", ""),
        )  # fmt: skip
        answer = await route.handler(ask)
        return _response(200, answer)

    async def _who(self, request: Request) -> Caller:
        address, now_s = _address(request), time.monotonic()
        wait_s = self._tries.wait_s(address, now_s)
        if wait_s:
            raise UserError(
                f"Too many wrong tokens came from {address}. Ask again in {wait_s:.0f} s.",
                code="token.tries",
            )
        who = await self.access.who(request.headers.get("authorization", ""))
        if who is None:
            if "authorization" in request.headers:
                self.audit.failed(address, self._tries.failed(address, now_s))
            raise UserError("The token is missing or invalid.", code="token.missing")
        return who

    def _call(self, request: Request) -> CheckedCall:
        path: str = request.scope["path"]
        if self._context and (path == self._context or path.startswith(self._context + "/")):
            path = path[len(self._context) :] or "/"
        path = path.rstrip("/") or "/"
        template, parameters = self._exact.get(path), {}
        if template is None:
            for pattern, declared in self._patterns:
                found = pattern.fullmatch(path)
                if found:
                    template, parameters = declared, found.groupdict()
                    break
        methods = self._methods.get(template, {}) if template else {}
        method = "GET" if request.method == "HEAD" else request.method
        return CheckedCall(request, path, methods.get(method), parameters, tuple(sorted(methods)))


def _unknown(call: CheckedCall) -> UserError:
    if call.allowed:
        allowed = ", ".join(call.allowed)
        return UserError(f"This path takes {allowed}.", code="path.method", allow=allowed)
    return UserError("There is no such path. /openapi.json lists them.", code="path.unknown")


def _check_scope(who: Caller, route: Route, parameters: Mapping[str, str]) -> None:
    """Keep a token that is for some jobs from learning of any other, even that it exists."""
    if not who.jobs or route.permission is Permission.PUBLIC:
        return
    job = parameters.get("jobId")
    if job is None and not route.narrow:
        raise UserError("This token is for some jobs only, and this is not.", code="token.role")
    if job is not None and not who.sees(job):
        raise UserError(f"There is no job {job}.", code="job.unknown")


def _address(request: Request) -> str:
    return request.client.host if request.client else "local"


def _check_origin(request: Request) -> None:
    """Refuse what another site's page has a browser send."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or site in ("cross-site", "same-site"):
        raise UserError("A page of another site may not ask for this.", code="origin")


async def _body(request: Request, route: Route) -> bytes:
    """Read the body, up to a size and within a time."""
    if request.method in SAFE or route.body is None:
        return b""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > BODY_BYTES_MAX:
        raise _too_large()
    if "content-encoding" in request.headers:
        raise UserError("Send the body as it is, without an encoding.", code="request.media")
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S_MAX):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > BODY_BYTES_MAX:
                    raise _too_large()
    except TimeoutError as error:
        raise Unavailable("The body did not come in time.", code="request.slow") from error
    return b"".join(parts)


def _too_large() -> UserError:
    return UserError(f"A body may have {BODY_BYTES_MAX:,} bytes at most.", code="request.large")


def _query(route: Route, raw: Mapping[str, str]) -> Any:
    if route.query is None:
        return None
    try:
        return msgspec.convert(raw, type=route.query, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(f"Invalid query: {error}.", code="request.query") from error


def _decoded(route: Route, body: bytes) -> Any:
    if route.body is None or route.body is bytes:
        return body
    try:
        return msgspec.json.decode(body, type=route.body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UserError(f"The request cannot be read: {error}.", code="request") from error


def _response(status: int, answer: object, headers: Mapping[str, str] | None = None) -> Response:
    more = {**HEADERS, **(headers or {})}
    match answer:
        case Response():
            for name, value in HEADERS.items():
                answer.headers.setdefault(name, value)
            return answer
        case TextAnswer(content, media, own):
            return Response(content, status, {**more, **own, "Content-Type": media})
    more["Content-Type"] = "application/json;charset=UTF-8"
    return Response(msgspec.json.encode(answer), status, more)


def _extra(request: Request, status: int, error: BaseException) -> dict[str, str]:
    """Return the headers that go with a status."""
    about = error.about if isinstance(error, HoldfastError) else {}
    match status:
        case 401:
            # A browser would ask its user for a password at a Basic challenge; a page of ours asks.
            basic = "" if "sec-fetch-mode" in request.headers else ', Basic realm="Holdfast"'
            return {"WWW-Authenticate": f'Bearer realm="Holdfast"{basic}'}
        case 405:
            return {"Allow": str(about.get("allow", ""))}
        case 429:
            return {"Retry-After": "60"}
        case 503:
            return {"Retry-After": "1"}
    return {}


def compiled(path: str) -> re.Pattern[str]:
    """Return a pattern that finds the parameters of a path, whatever they hold."""
    parts = re.split(r"{(\w+)}", path)
    return re.compile(
        "".join(
            f"(?P<{part}>[^/]+)" if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        )
    )
