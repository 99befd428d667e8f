"""Whose pages may ask a master: its own and its fellow masters', and nobody else's."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from holdfast.api.ui import UiOrigins, known_masters, origin_of

OWN, OTHER = "http://m1:5801", "http://m2:5801"
POLICY = b"default-src 'none'; connect-src 'self'; base-uri 'none'"


class Asked:
    """A request through the wrapper: what the app was given and what the browser got."""

    def __init__(self, method: str, headers: dict[str, str]) -> None:
        self.seen: dict[str, str] | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        given = [(k.encode(), v.encode()) for k, v in headers.items()]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": "/", "headers": given}
        asyncio.run(UiOrigins(self.app, [OWN, OTHER + "/"])(scope, self.receive, self.send))

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen = {k.decode(): v.decode() for k, v in scope["headers"]}
        headers = [(b"content-security-policy", POLICY)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def receive(self) -> Message:
        raise AssertionError("nothing is read")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}


def test_a_fellow_masters_page_counts_as_our_own() -> None:
    told = {"origin": OTHER, "sec-fetch-site": "cross-site", "authorization": "Bearer x"}
    asked = Asked("POST", told)
    assert asked.seen == {"authorization": "Bearer x"}
    assert asked.headers["access-control-allow-origin"] == OTHER
    assert asked.headers["vary"] == "origin"
    assert "access-control-allow-credentials" not in asked.headers


def test_its_browser_may_ask_first_and_learns_nothing() -> None:
    told = {"origin": OTHER, "access-control-request-method": "POST"}
    asked = Asked("OPTIONS", told)
    assert asked.seen is None
    assert asked.status == 204
    assert asked.headers["access-control-allow-headers"] == "authorization, content-type"


@pytest.mark.parametrize(
    "origin", ["https://m2:5801", "http://m2", "http://m2:5801.evil.example", "null", "http://evil"]
)
@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_a_stranger_stays_one(origin: str, method: str) -> None:
    told = {
        "origin": origin,
        "sec-fetch-site": "cross-site",
        "access-control-request-method": "GET",
    }
    asked = Asked(method, told)
    assert asked.seen == told, "the app sees, and refuses, it"
    assert not [h for h in asked.headers if h.startswith("access-control")]


def test_the_page_may_reach_the_masters_and_nothing_else() -> None:
    policy = Asked("GET", {}).headers["content-security-policy"]
    assert policy == f"default-src 'none'; connect-src 'self' {OWN} {OTHER}; base-uri 'none'"


def test_a_list_of_masters_without_this_one_is_not_believed() -> None:
    assert known_masters([OTHER, OWN + "/"], OWN) == [OWN, OTHER]
    assert known_masters(["http://127.0.0.1:5801"], OWN) == [OWN]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://M1:5801/path/", "http://m1:5801"),
        ("http://m1:80", "http://m1"),
        ("https://m1:443/", "https://m1"),
        ("https://user:word@m1:8443", "https://m1:8443"),
        ("http://[::1]:5801", "http://[::1]:5801"),
    ],
)
def test_origins_are_written_as_browsers_write_them(url: str, origin: str) -> None:
    assert origin_of(url) == origin
