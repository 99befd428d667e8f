"""Options as plans, logs and answers may show them: without secrets.

What an options class declares as `Secret` is masked, and so is whatever looks like a credential by
its name or inside a URL, because options that pass through to Spark declare nothing.
"""

import re
from typing import Any

from holdfast.connect.options import describe
from holdfast.model.secret import MASK
from holdfast.model.tree import Block, Items, Node, Plain, Scalar, to_plain

_NAMES = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|credential|private[-_.]?key|api[-_.]?key"
    r"|access[-_.]?key|account[-_.]?key|sas$|^auth$|signature",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(
    # Bounded where they could backtrack: the author of a job chooses the text.
    r"(?P<user>://[^/\s:@]{0,256}:)[^@\s]{1,2048}(?=@)"
    r"|(?P<key>(?:password|passwd|pwd|secret|token|(?:api|secret|access)[-_]?key)\s{0,9}=\s{0,9})"
    r"[^&;,\s]+",
    re.IGNORECASE,
)


def masked(node: Node, cls: type[Any] | None, key: str = "") -> Plain:
    """Return a tree as plain data with every secret in it masked."""
    if key and _NAMES.search(key):
        return MASK
    match node:
        case Block(entries=entries):
            secret, inner = _declared(cls)
            return {
                e.key: MASK
                if any(s == e.key or s.startswith(e.key + ".") for s in secret)
                else masked(e.node, inner.get(e.key), e.key)
                for e in entries
            }
        case Items(items=items):
            return [masked(item, cls) for item in items]
        case Scalar(value=str() as text):
            return masked_text(text)
        case Scalar():
            return to_plain(node)


def is_secret(key: str) -> bool:
    """Say whether an option is a secret by its name."""
    return bool(_NAMES.search(key))


def secret_keys(cls: type[Any]) -> set[str]:
    """Return the keys of an options class, and of those inside it, that hold secrets."""
    secret, inner = _declared(cls)
    return secret.union(*(secret_keys(c) for c in inner.values() if c is not cls))


def masked_text(text: str) -> str:
    """Return a text with passwords in URLs and connection strings masked."""
    return _IN_TEXT.sub(lambda m: f"{m['user'] or m['key']}{MASK}", text)


def _declared(cls: type[Any] | None) -> tuple[set[str], dict[str, type[Any]]]:
    """Return the keys of an options class that hold secrets, and those that hold blocks."""
    infos = describe(cls) if cls else ()
    secret = {k for i in infos if "secret" in i.kind for k in (i.key, *i.aliases)}
    inner = {k: i.inner for i in infos if i.inner for k in (i.key, *i.aliases)}
    return secret, inner
