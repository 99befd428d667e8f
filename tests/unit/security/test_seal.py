"""Sealing: only its keys open it, only where it is meant; another key is told at the start."""

import asyncio

import pytest

from holdfast.api.sealing import CHECK, check_seal
from holdfast.errors import UserError
from holdfast.model.secret import Secret
from holdfast.security.seal import MARK, Seal
from holdfast.store.open import open_store


def test_what_is_sealed_is_opened_by_its_keys_alone() -> None:
    old, new = Seal([Secret("old")]), Seal([Secret("new"), Secret("old")])
    text = old.close("a secret", "spec")
    assert text.startswith(MARK) and "secret" not in text
    assert old.close("a secret", "spec") != text, "no two look the same"
    assert old.open(text, "spec") == new.open(text, "spec") == "a secret"
    with pytest.raises(UserError, match="Was the token changed"):
        old.open(new.close("x", "spec"), "spec")
    with pytest.raises(UserError, match="belongs to something else"):
        old.open(text, "option")
    for bad in (text[:-4], text[:-6] + "AAAAAA", text + "!"):
        with pytest.raises(UserError, match="was changed"):
            old.open(bad, "spec")
    assert old.open("never sealed", "spec") == "never sealed"


def test_a_master_with_another_key_refuses_to_start() -> None:
    async def run() -> None:
        store = await open_store("memory:")
        first, second = Seal([Secret("one")]), Seal([Secret("two")])
        await check_seal(store, first)
        await check_seal(store, first)
        with pytest.raises(UserError, match="cannot read the jobs in this store"):
            await check_seal(store, second)
        await check_seal(store, Seal([Secret("two"), Secret("one")]))
        assert await store.get(CHECK)

    asyncio.run(run())
