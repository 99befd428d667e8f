"""A store in an etcd cluster, for masters on several machines.

Reads are etcd's linearizable reads: never `serializable`.  A commit is one etcd transaction with
compares on `mod_revision`, so revision and term are etcd's own.  Holdfast asks for etcd 3.5.12 or
later (earlier ones can lose consistency) and for `--auto-compaction-retention`, without which etcd
keeps every old value until its disk quota is full.
"""

import asyncio
import base64
import math
import re
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs, unquote

from holdfast.errors import Unavailable, UserError
from holdfast.model.secret import Secret
from holdfast.store.contract import (
    Change,
    Compacted,
    Delete,
    Guard,
    Item,
    LeaseLost,
    Put,
    Store,
)
from holdfast.store.etcd_gateway import LATER_ERRORS, Gateway, Refused
from holdfast.store.floor import Floor
from holdfast.store.limits import check_commit, check_key, check_prefix
from holdfast.store.order import by_revision, prefix_end

TIMEOUT_S = 5.0
SILENCE_S = 2.0
RETRY_S = 0.2
PAGE_KEYS = 500
HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?")


class EtcdStore:
    """A store in etcd.  Created inside an event loop."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        silence_s: float = SILENCE_S,
        tls: ssl.SSLContext | None = None,
        user: str | None = None,
        password: Secret | None = None,
    ) -> None:
        """Name the servers as `http://host:port`; `tls` is for `https://`.

        A call is tried for `timeout_s` at each server that could answer it.  A watch that received
        nothing for `silence_s` asks whether its server is still part of the cluster.
        """
        self._gateway = Gateway(list(endpoints), timeout_s, tls, user, password)
        self._silence_s = silence_s
        self._floor = Floor(self._gateway.name)

    async def get(self, key: str) -> Item | None:
        """Return a key's current value, or None."""
        check_key(key)
        found, _ = await self._range({"key": _b64(key.encode())})
        return _item(found[0]) if found else None

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Return all keys that start with a prefix, sorted, and the revision they are as of."""
        check_prefix(prefix)
        while True:
            try:
                return await self._range_in_pages(prefix)
            except Compacted:
                # History was thrown away between two pages: begin again, at a newer revision.
                continue

    async def _range_in_pages(self, prefix: str) -> tuple[list[Item], int]:
        """Read as many keys at a time as fit into one answer, all as of the first one's revision.

        Old gateways answer at most 4 MB; how many keys that is shows only when it is too much.
        """
        start, end = _bounds(prefix)
        items: list[Item] = []
        page, as_of = PAGE_KEYS, 0
        while True:
            body = {"key": _b64(start), "range_end": _b64(end), "limit": page, "revision": as_of}
            try:
                found, revision = await self._range(body)
            except Refused:
                if page == 1:
                    raise
                page = max(1, page // 8)
                continue
            items += [_item(kv) for kv in found]
            as_of = as_of or revision
            if len(found) < page:
                return items, as_of
            start = items[-1].key.encode() + b"\0"

    async def _range(self, body: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
        floor = self._floor.at()
        answer = await self._gateway.read("/v3/kv/range", body)
        return answer.get("kvs", []), self._floor.check(int(answer["header"]["revision"]), floor)

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply all changes if all guards hold; return the revision, or None if one does not."""
        check_commit(guards, changes)
        if not guards and not changes:
            return (await self._range({"key": _b64(b"-"), "keys_only": True}))[1]
        # Without a linearizable read or a write in it, etcd answers from what a member happens to
        # know, which may be old: it would say that a deposed leader still leads.
        look = {"request_range": {"key": _b64((*guards, *changes)[0].key.encode())}}
        body = {
            "compare": [_compare(guard) for guard in guards],
            "success": [_operation(change) for change in changes] or [look],
        }
        floor = self._floor.at()
        answer = await self._gateway.write("/v3/kv/txn", body)
        revision = self._floor.check(int(answer["header"]["revision"]), floor)
        return revision if answer.get("succeeded") else None

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """Yield changes below a prefix after a revision, one list a revision."""
        check_prefix(prefix)
        start, end = _bounds(prefix)
        keys = {"key": _b64(start), "range_end": _b64(end)}
        while True:
            endpoint = self._gateway.endpoint()
            try:
                await self._check_present(keys, after)
                async with aclosing(self._stream(endpoint, keys, after)) as stream:
                    async for made in stream:
                        yield made
                        after = made[0].revision
            except (Unavailable, Refused, *LATER_ERRORS):
                self._floor.at()
                await asyncio.sleep(RETRY_S)
            self._gateway.leave(endpoint)

    async def _check_present(self, keys: dict[str, str], after: int) -> None:
        _, revision = await self._range({**keys, "limit": 1, "keys_only": True})
        self._floor.check(revision, after)

    async def _stream(
        self, endpoint: str, keys: dict[str, str], after: int
    ) -> AsyncGenerator[list[Change], None]:
        """Yield what one endpoint sends until it ends."""
        body = {"create_request": {**keys, "start_revision": str(after + 1), "fragment": True}}
        pending: list[Change] = []
        told = self._gateway.stream(endpoint, "/v3/watch", body, self._silence_s)
        async with aclosing(told) as answers:
            async for answer in answers:
                self._floor.at()
                if answer is None:
                    # A member that was stopped or cut off keeps silent just like an idle one.
                    look = {**keys, "limit": 1, "keys_only": True}
                    await self._gateway.ask(endpoint, "/v3/kv/range", look)
                    continue
                if "compact_revision" in answer:
                    raise Compacted(f"etcd keeps no history after revision {after}")
                if answer.get("canceled"):
                    raise Refused(0, str(answer.get("cancel_reason", "the watch was cancelled")))
                pending += [_change(event) for event in answer.get("events", [])]
                if not answer.get("fragment"):
                    for made in by_revision(pending):
                        yield made
                    pending = []

    async def grant_lease(self, ttl_s: float) -> int:
        """Return a new lease that lapses unless kept within `ttl_s`, rounded up to seconds."""
        self._floor.at()
        body = {"TTL": max(1, math.ceil(ttl_s))}
        return int((await self._gateway.write("/v3/lease/grant", body))["ID"])

    async def keep_lease(self, lease: int) -> None:
        """Start the lease's time again."""
        self._floor.at()
        answer = await self._gateway.write("/v3/lease/keepalive", {"ID": str(lease)})
        if int(answer.get("TTL", 0)) <= 0:
            raise LeaseLost(f"lease {lease} has lapsed")

    async def revoke_lease(self, lease: int) -> None:
        """End a lease at once, with the keys that hang on it."""
        self._floor.at()
        try:
            await self._gateway.write("/v3/lease/revoke", {"ID": str(lease)})
        except LeaseLost:
            return

    async def close(self) -> None:
        """Release all connections, and end the watches."""
        self._floor.closed = True
        await self._gateway.close()


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def _bounds(prefix: str) -> tuple[bytes, bytes]:
    """Return the range of a prefix: its first key and the first after it; NUL is "no end"."""
    end = prefix_end(prefix)
    return prefix.encode() or b"\0", b"\0" if end is None else end.encode()


def _compare(guard: Guard) -> dict[str, str]:
    return {
        "target": "MOD",
        "result": "EQUAL",
        "key": _b64(guard.key.encode()),
        "mod_revision": str(guard.revision),
    }


def _operation(change: Put | Delete) -> dict[str, dict[str, str]]:
    key = _b64(change.key.encode())
    if isinstance(change, Delete):
        return {"request_delete_range": {"key": key}}
    lease = str(change.lease or 0)
    return {"request_put": {"key": key, "value": _b64(change.value), "lease": lease}}


def _item(kv: dict[str, str]) -> Item:
    return Item(
        _text(kv["key"]),
        base64.b64decode(kv.get("value", "")),
        int(kv["mod_revision"]),
        int(kv["create_revision"]),
        int(kv["lease"]) if "lease" in kv else None,
    )


def _change(event: dict[str, Any]) -> Change:
    kv = event["kv"]
    item = None if event.get("type") == "DELETE" else _item(kv)
    return Change(_text(kv["key"]), item, int(kv["mod_revision"]))


async def open_url(url: str) -> Store:
    """Open the cluster that a URL names.

    `etcd:http://h1:2379,h2:2379`, or `etcd:https://user:password@h1:2379,h2:2379?ca=CA.pem` with
    `cert=` and `key=` for a client's own certificate.
    """
    return EtcdStore(**_options(url.removeprefix("etcd:")))


def _options(address: str) -> dict[str, Any]:
    scheme, _, rest = address.partition("://")
    place, _, query = rest.partition("?")
    login, _, hosts = place.rpartition("@")
    named = [host.removeprefix(f"{scheme}://").rstrip("/") for host in hosts.split(",")]
    if scheme not in ("http", "https") or not all(HOST.fullmatch(host) for host in named):
        raise UserError(
            "The store etcd: names no servers. Write etcd:http://host1:2379,host2:2379, or https.",
            code="store.url",
        )
    user, _, password = login.partition(":")
    endpoints = [f"{scheme}://{host}" for host in named]
    return {
        "endpoints": endpoints,
        "tls": _tls(query) if scheme == "https" else None,
        "user": unquote(user) if login else None,
        "password": Secret(unquote(password)) if login else None,
    }


def _tls(query: str) -> ssl.SSLContext:
    given = {name: values[-1] for name, values in parse_qs(query).items()}
    unknown = sorted(given.keys() - {"ca", "cert", "key"})
    if unknown:
        raise UserError(
            f"The store etcd: does not know {', '.join(unknown)}. It knows ca, cert and key.",
            code="store.url",
        )
    try:
        context = ssl.create_default_context(cafile=given.get("ca"))
        if "cert" in given:
            context.load_cert_chain(given["cert"], given.get("key"))
    except OSError as error:
        raise UserError(
            f"A certificate of the store etcd: cannot be read: {error}.", code="store.url"
        ) from error
    return context
