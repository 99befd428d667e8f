"""A URL names a store, and a bad one is explained."""

import asyncio
import sys
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.store.contract import Put
from holdfast.store.open import open_store


@pytest.mark.parametrize("url", ["memory:", "sqlite:{folder}/store.db", "sqlite:///{folder}/s"])
def test_a_url_opens_its_store(url: str, tmp_path: Path) -> None:
    async def inside() -> None:
        store = await open_store(url.format(folder=tmp_path))
        assert await store.commit([], [Put("a", b"1")]) == 1
        await store.close()

    asyncio.run(inside())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://host", "There is no store redis:. Use one of: memory:, sqlite:/var/lib"),
        ("store.db", "There is no store without a scheme. Use one of: memory:, sqlite:/var"),
        ("", "There is no store without a scheme"),
        ("sqlite:", "names no file. Write sqlite:PATH."),
        ("etcd:host:2379", "names no servers. Write etcd:http://host1:2379,host2:2379"),
        ("etcd:http://", "names no servers"),
        ("etcd:http://h1:2379,,h2", "names no servers"),
        ("etcd:http://h1:port", "names no servers"),
        ("etcd:https://host?capath=x", "does not know capath. It knows ca, cert and key."),
        ("etcd:https://host?ca=/nowhere.pem", "cannot be read: [Errno 2]"),
    ],
)
def test_a_bad_url_says_what_to_write(url: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        asyncio.run(open_store(url))
    assert said in str(error.value)


@pytest.mark.parametrize(("library", "scheme"), [("aiohttp", "etcd"), ("psycopg", "postgres")])
def test_a_missing_library_is_named_by_its_extra(
    library: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(f"holdfast.store.{scheme}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=rf"pip install 'holdfast\[{scheme}\]'"):
        asyncio.run(open_store(f"{scheme}:http://host"))
