"""Seal the secrets of a job's options, and open them again where a job is submitted with them."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.connect.registry import Registry
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.model.job import Role
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.masking import is_secret, secret_keys
from holdfast.security.seal import MARK, Seal
from holdfast.store.contract import Guard, Put, Store

SPEC, OPTION = "spec", "option"
"""What a seal is for: one of them never opens where the other is meant."""

CHECK = "seal/check"
AGAIN_S = 0.5


async def check_seal(store: Store, seal: Seal) -> None:
    """Refuse to start where the store's jobs are sealed with a key that this master has not.

    The first master leaves a mark that its key opens; every later one must open it.
    """
    while True:
        try:
            item = await store.get(CHECK)
            if item:
                _check(item.value.decode(), seal)
                return
            mark = seal.close("holdfast", CHECK)
            await store.commit([Guard(CHECK, 0)], [Put(CHECK, mark.encode())])
        except (Unavailable, OutcomeUnknown):
            await asyncio.sleep(AGAIN_S)  # the store is waited for, as everywhere


def _check(mark: str, seal: Seal) -> None:
    try:
        seal.open(mark, CHECK)
    except UserError as error:
        raise UserError(
            f"This master cannot read the jobs in this store. {error}", code="seal.key"
        ) from error


def opened_options(tree: Block, unseal: Callable[[str], str]) -> Block:
    """Return a job's tree with every sealed value opened."""
    opened = _opened(tree, unseal)
    assert isinstance(opened, Block)
    return opened


def sealed_options(
    config: dict[str, Any], registry: Registry, seal: Callable[[str], str]
) -> dict[str, Any]:
    """Return a job's JSON with its secrets sealed."""
    found = dict(config)
    for role in Role:
        stages = config.get(role.value)
        if isinstance(stages, list):
            found[role.value] = [_sealed_stage(s, role, registry, seal) for s in stages]
    env = config.get("env")
    if isinstance(env, dict):
        found["env"] = _sealed(env, frozenset(), seal)
    return found


def _sealed_stage(stage: Any, role: Role, registry: Registry, seal: Callable[[str], str]) -> Any:
    if not isinstance(stage, dict):
        return stage
    kind = registry.find(role, str(stage.get("plugin_name", "")))
    secret = frozenset(secret_keys(kind.options_class)) if kind else frozenset()
    return _sealed(stage, secret, seal)


def _sealed(value: Any, secret: frozenset[str], seal: Callable[[str], str], key: str = "") -> Any:
    match value:
        case dict():
            return {k: _sealed(v, secret, seal, k) for k, v in value.items()}
        case list():
            return [_sealed(v, secret, seal, key) for v in value]
        case str() if (key in secret or is_secret(key)) and not value.startswith(MARK):
            return seal(value)
    return value


def _opened(node: Node, unseal: Callable[[str], str]) -> Node:
    match node:
        case Scalar(value=str() as text) if text.startswith(MARK):
            plain = unseal(text)
            return Scalar(plain, plain, node.place)
        case Scalar():
            return node
        case Items(items=items):
            return Items(tuple(_opened(i, unseal) for i in items), node.place)
        case Block(entries=entries):
            opened = (Entry(e.key, _opened(e.node, unseal), e.place) for e in entries)
            return Block(tuple(opened), node.place)
