"""The UI: its pages, and which masters' pages may ask this one.

The pages are files that come with the package, read once, each a path of its own.  They hold
nothing of any job, so anyone who opens the address may load them; what they show they ask for with
a token.  No name from a request ever becomes a path.

A browser lets a page ask only the address it came from.  The pages of this cluster's own masters
may ask each other too, so that a page still works when its master is gone; no other page may.  A
page shows its token in a header of its own, never in a cookie, so that this gives no rights away.
"""

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.route import ApiRequest, Handler, Permission, Route, TextAnswer

MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json;charset=UTF-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
KEPT_BY_BROWSERS = {"Cache-Control": "public, max-age=31536000, immutable"}
"""For names that hold a hash of their content, in `assets/`."""

FOREIGN = (b"origin", b"sec-fetch-site")
POLICY = b"content-security-policy"
OWN_ONLY = b"connect-src 'self'"
KEPT_S = 600


class UiOrigins:
    """An app that takes the pages of its fellow masters for its own."""

    def __init__(self, app: ASGIApp, masters: Iterable[str]) -> None:
        self._app = app
        self.origins = tuple(dict.fromkeys(origin_of(url) for url in masters))
        self._policy = b" ".join((OWN_ONLY, *(o.encode() for o in self.origins)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one link."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"])
        origin = given.get(b"origin", b"").decode("latin-1")
        peer = origin if origin in self.origins else ""
        if peer and scope["method"] == "OPTIONS" and b"access-control-request-method" in given:
            await self._allow(peer, send)
            return
        if peer:
            kept = [(k, v) for k, v in scope["headers"] if k not in FOREIGN]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, self._telling(peer, send))

    async def _allow(self, peer: str, send: Send) -> None:
        """Answer a browser that asks whether its page may ask.  It says nothing else."""
        headers = [
            *_named(peer),
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", b"authorization, content-type"),
            (b"access-control-max-age", str(KEPT_S).encode()),
        ]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _telling(self, peer: str, send: Send) -> Send:
        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (k, v.replace(OWN_ONLY, self._policy) if k.lower() == POLICY else v)
                    for k, v in message["headers"]
                ]
                message = {**message, "headers": [*headers, *(_named(peer) if peer else ())]}
            await send(message)

        return tell


def known_masters(told: Iterable[str], own: str) -> list[str]:
    """Return the URLs of all masters, the own one first.

    A list without this master is about another cluster, or is the default one: a page that
    believed it would show its token to a stranger.
    """
    others = [url.rstrip("/") for url in told]
    mine = own.rstrip("/")
    return list(dict.fromkeys([mine, *others])) if mine in others else [mine]


def origin_of(url: str) -> str:
    """Return the part of a URL that a browser calls the origin."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    named = f"[{host}]" if ":" in host else host
    usual = port is None or (parts.scheme, port) in (("http", 80), ("https", 443))
    return f"{parts.scheme}://{named}" + ("" if usual else f":{port}")


def _named(peer: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", peer.encode()),
        (b"access-control-expose-headers", b"date"),
        (b"vary", b"origin"),
    ]


def page_routes(folder: Traversable | None = None) -> list[Route]:
    """Return a path for each file of the UI; `index.html` is `/`.  None if there is no UI."""
    root = folder or files("holdfast").joinpath("ui")
    if not root.is_dir():
        return []
    return [_route(path, file) for path, file in sorted(_files(root, ""), key=lambda f: f[0])]


def _files(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _files(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in {m.removeprefix(".") for m in MEDIA}:
            found.append((f"{prefix}{each.name}", each))
    return found


def _route(name: str, file: Traversable) -> Route:
    path = "/" if name == "index.html" else f"/{name}"
    media = MEDIA["." + name.rpartition(".")[2]]
    headers = KEPT_BY_BROWSERS if name.startswith("assets/") else {}
    answer = TextAnswer(file.read_bytes(), media, headers)
    return Route(
        "GET",
        path,
        Permission.PUBLIC,
        _answering(answer),
        TextAnswer,
        f"The UI's {name}.",
        leads=False,
    )


def _answering(answer: TextAnswer) -> Handler:
    async def handler(ask: ApiRequest) -> TextAnswer:
        return answer

    return handler
