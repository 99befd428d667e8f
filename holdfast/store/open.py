"""Find the store that a URL names, and load only that one: most need only one library of three."""

import importlib

from holdfast.errors import UserError
from holdfast.store.contract import Store

MODULES = {
    "memory": "holdfast.store.memory",
    "sqlite": "holdfast.store.sqlite",
    "etcd": "holdfast.store.etcd",
    "postgres": "holdfast.store.postgres",
    "postgresql": "holdfast.store.postgres",
}
EXTRAS = {"aiohttp": "etcd", "psycopg": "postgres"}
EXAMPLES = (
    "memory:",
    "sqlite:/var/lib/holdfast/store.db",
    "etcd:http://host1:2379,host2:2379,host3:2379",
    "postgres://user@host/database",
)


async def open_store(url: str) -> Store:
    """Open the store that a URL names.  Raises `UserError` for one that cannot work.

    No message shows more of the URL than its scheme: the rest may hold a password.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in MODULES:
        named = f"{scheme}:" if colon else "without a scheme"
        raise UserError(
            f"There is no store {named}. Use one of: {', '.join(EXAMPLES)}.", code="store.url"
        )
    try:
        module = importlib.import_module(MODULES[scheme])
    except ImportError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise UserError(
            f"The store {scheme}: needs a library that is not installed."
            f" Install it: pip install 'holdfast[{extra}]'.",
            code="store.extra",
        ) from error
    store: Store = await module.open_url(url)
    return store
