"""Keep what job files hold out of the store's reach: records carry it sealed.

AES-256-GCM.  The key is derived from a secret that is not in the store: the cluster's token, or
what `seal_key_file` holds.  Its first line seals; every line opens, so that a key can be changed
while jobs run.  The text says which key it needs, so that a master without it says so instead of
failing somewhere else.
"""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from holdfast.errors import UserError
from holdfast.model.secret import Secret

MARK = "sealed:v1:"
NONCE_BYTES = 12


class Seal:
    """Seals and opens texts.  `secrets`: the first seals, all of them open."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        keys = [_key(s) for s in secrets]
        self._keys = {_name(key): AESGCM(key) for key in keys}
        self._first = _name(keys[0])

    def close(self, text: str, about: str = "") -> str:
        """Return a text that only these keys open, and only under the same `about`."""
        nonce = os.urandom(NONCE_BYTES)
        body = self._keys[self._first].encrypt(nonce, text.encode(), about.encode())
        return f"{MARK}{self._first}:{base64.urlsafe_b64encode(nonce + body).decode()}"

    def open(self, text: str, about: str = "") -> str:
        """Return what was sealed.  A text that was never sealed is returned as it is."""
        if not text.startswith(MARK):
            return text
        name, _, body = text.removeprefix(MARK).partition(":")
        key = self._keys.get(name)
        if key is None:
            raise UserError(
                f"It is sealed with key {name}, which this process does not have (it has"
                f" {', '.join(self._keys)}). Was the token changed? Put the former one on a second"
                " line of seal_key_file.",
                code="seal.key",
            )
        try:
            raw = base64.b64decode(body, altchars=b"-_", validate=True)
            return key.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode()).decode()
        except (InvalidTag, binascii.Error, ValueError) as error:
            raise UserError(
                "What is sealed here was changed, or belongs to something else.", code="seal.bad"
            ) from error


def _key(secret: Secret) -> bytes:
    return hmac.digest(b"holdfast seal v1", secret.reveal().encode(), "sha256")


def _name(key: bytes) -> str:
    return hashlib.sha256(b"name" + key).hexdigest()[:8]
