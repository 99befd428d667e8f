"""A durable call without a label cannot be crashed at, so it must not exist."""

import ast

import pytest

from tests.sim.engine import labels


def test_every_durable_call_of_a_master_has_a_label() -> None:
    assert labels.unlabelled() == []


def test_every_label_is_written_out_or_the_keepers_own() -> None:
    assert labels.open_labels() == []


def test_labels_of_both_kinds_are_found() -> None:
    known = labels.known()
    assert {"leader.elect", "blob.put", "table.commit", "job.bury", "confirm"} <= known
    assert {
        "job.JobCancelRequested",
        "pipeline.CheckpointStored",
        "pipeline.LeaderChanged",
    } <= known


@pytest.mark.parametrize(
    "source",
    [
        "async def f(self):\n    await self.store.commit([], [])",
        "async def f(ports):\n    await ports.blobs.drop('x')",
        "async def f(ports):\n    send = ports.tables.sweep\n    await send('j', 'i')",
    ],
)
def test_a_call_without_a_label_is_found(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "sources", lambda _: [("made_up", ast.parse(source))])
    assert len(labels.unlabelled()) == 1
