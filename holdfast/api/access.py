"""Who asks: the cluster's own token, or a token that an admin has given out.

The cluster's token is the admin's.  Others are kept in the store by their hash alone, so that any
master knows them and one that is taken back is refused from that moment on.  A token is 256 random
bits: nothing slower than SHA-256 is needed to keep it from being guessed.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict

import msgspec

from holdfast.api.route import JOB_ID, NAME, AccessRole, Caller
from holdfast.errors import UserError
from holdfast.model.secret import Secret
from holdfast.store.contract import Delete, Guard, Put, Store

PREFIX = "access/"
TOKEN = re.compile(r"hf_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
ADMIN = Caller("admin", AccessRole.ADMIN)
TRIES_MAX = 100
TRIES_S = 60.0
ADDRESSES_MAX = 10_000


class TokenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token as the store keeps it.  `expires_s` is a date; 0: never."""

    name: str
    role: AccessRole
    sha256: str
    created_s: float
    expires_s: float = 0.0
    jobs: str = ""
    version: int = 1


class TokenView(msgspec.Struct):
    """A token as answers show it."""

    id: str
    name: str
    role: str
    created_s: float
    expires_s: float
    jobs: str = ""


class NewToken(msgspec.Struct):
    """A new token; its text is shown this once."""

    id: str
    name: str
    role: str
    token: str
    expires_s: float


class Access:
    """Find out who asks."""

    def __init__(self, token: Secret, store: Store) -> None:
        self._token = token
        self._store = store

    async def who(self, header: str) -> Caller | None:
        """Return who an Authorization header speaks for; None if the token is not known."""
        shown = _shown(header)
        if shown is None:
            return None
        if hmac.compare_digest(shown.encode(), self._token.reveal().encode()):
            return ADMIN
        found = TOKEN.fullmatch(shown)
        item = await self._store.get(PREFIX + found[1]) if found else None
        if item is None:
            return None
        try:
            record = msgspec.json.decode(item.value, type=TokenRecord)
        except msgspec.DecodeError:
            return None  # of a later version, or damaged: it opens nothing
        same = hmac.compare_digest(record.sha256, _hash(shown))
        over = record.expires_s and time.time() >= record.expires_s
        return Caller(record.name, record.role, record.jobs) if same and not over else None

    async def tokens(self) -> list[TokenView]:
        """Return the tokens that were given out."""
        items, _ = await self._store.range(PREFIX)
        found = [
            (i.key.removeprefix(PREFIX), msgspec.json.decode(i.value, type=TokenRecord))
            for i in items
        ]
        return [
            TokenView(n, r.name, r.role.value, r.created_s, r.expires_s, r.jobs) for n, r in found
        ]

    async def give(self, name: str, role: AccessRole, days: float, jobs: str = "") -> NewToken:
        """Make a token.  Only its hash is kept."""
        if jobs and (not JOB_ID.fullmatch(jobs) or role is AccessRole.ADMIN):
            raise UserError(
                "A token for some jobs says how their ids begin, and is no admin's.",
                code="token.jobs",
            )
        if not NAME.fullmatch(name) or name == ADMIN.name:
            raise UserError(
                f"'{name}' is not a valid name for a token. Use letters, digits, '.', '_' or '-';"
                " 'admin' is the cluster's own token.",
                code="token.name",
            )
        number = secrets.token_hex(8)
        token = f"hf_{number}_{secrets.token_urlsafe(32)}"
        now_s = time.time()
        expires_s = now_s + days * 86_400 if days else 0.0
        record = TokenRecord(name, role, _hash(token), now_s, expires_s, jobs)
        await self._store.commit(
            [Guard(PREFIX + number, 0)], [Put(PREFIX + number, msgspec.json.encode(record))]
        )
        return NewToken(number, name, role.value, token, expires_s)

    async def take_back(self, number: str) -> None:
        """Make a token worthless, at once and on every master."""
        if await self._store.get(PREFIX + number) is None:
            raise UserError(f"There is no token {number}.", code="path.unknown")
        await self._store.commit([], [Delete(PREFIX + number)])


class WrongTokens:
    """How often each address has shown a wrong token lately; too often, and it must wait."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait_s(self, address: str, now_s: float) -> float:
        """Return for how long requests from an address are refused; 0 if they are not."""
        since_s, times = self._failed.get(address, (now_s, 0))
        left_s = since_s + TRIES_S - now_s
        return left_s if times >= TRIES_MAX and left_s > 0 else 0.0

    def failed(self, address: str, now_s: float) -> int:
        """Note a wrong token; return how many there were in this minute."""
        since_s, times = self._failed.pop(address, (now_s, 0))
        if now_s - since_s >= TRIES_S:
            since_s, times = now_s, 0
        self._failed[address] = (since_s, times + 1)
        while len(self._failed) > ADDRESSES_MAX:
            self._failed.popitem(last=False)
        return times + 1


def _shown(header: str) -> str | None:
    """Return the token of a header: Bearer, or the password of Basic, as SeaTunnel's clients do."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer" and value:
        return value
    if scheme.lower() != "basic":
        return None
    try:
        _, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return password if colon else None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
