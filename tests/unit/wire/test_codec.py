"""Every message survives the wire, and nothing that is not one passes for one."""

import dataclasses
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.gather import Counts, StagedCommittable, TaskAck, WrittenRows
from holdfast.core.task import WorkerId
from holdfast.wire.codec import MESSAGES, VERSION, FrameUnreadable, decode, encode
from holdfast.wire.messages import (
    Barrier,
    BarrierAck,
    DeployTask,
    Heartbeat,
    HeartbeatAck,
    LookAtJob,
    Looked,
    SourceEndAck,
    SourceEndReport,
    StopTask,
    TaskKey,
    TaskReport,
    ToLeader,
    ToWorker,
)

text = st.text(max_size=8)
number = st.integers(0, 2**53)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
key = st.builds(TaskKey, text, text, number, text)
positions = st.lists(st.tuples(text, plain), max_size=3).map(tuple)
written = st.lists(st.builds(WrittenRows, text, text, number, number), max_size=2).map(tuple)
counts = st.builds(Counts, number, written)
staged = st.lists(st.builds(StagedCommittable, number, text, plain), max_size=3).map(tuple)
acked = st.builds(
    TaskAck,
    number,
    text,
    number,
    st.builds(WorkerId, text, text),
    positions,
    staged,
    st.booleans(),
    st.none() | number,
    st.booleans(),
    counts,
)
held = st.builds(
    TaskReport, key, number, st.none() | text, st.none() | number, st.booleans(), number, number
)
tags = st.lists(st.tuples(text, text), max_size=2).map(tuple)
told = st.lists(st.tuples(text, number, number, text), max_size=3).map(tuple)
messages = st.one_of(
    st.builds(
        Heartbeat, text, text, number, number, number, tags, st.lists(held, max_size=3).map(tuple)
    ),
    st.builds(DeployTask, number, key, number, text, st.none() | positions, number, counts),
    st.builds(StopTask, number, key, number, st.booleans()),
    st.builds(Barrier, number, key, number, number, number, number),
    st.builds(BarrierAck, number, key, acked),
    st.builds(SourceEndReport, number, key, number, text, text, text),
    st.builds(SourceEndAck, number, key, number, text),
    st.builds(HeartbeatAck, number),
    st.builds(LookAtJob, number, text, text, st.floats(0, 600)),
    st.builds(Looked, number, text, text, text, told, told, text),
)


@given(messages)
def test_every_message_survives(message: object) -> None:
    read = decode(encode(message))  # type: ignore[arg-type]
    assert read == message
    assert type(read) is type(message)
    if isinstance(read, BarrierAck):
        assert type(read.acked) is TaskAck
        assert all(type(s) is StagedCommittable for s in read.acked.staged)


@given(st.binary(max_size=40))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(FrameUnreadable):
        decode(noise)


@given(messages, st.data())
def test_a_part_of_a_frame_is_refused(message: object, data: st.DataObject) -> None:
    frame = encode(message)  # type: ignore[arg-type]
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(FrameUnreadable):
        decode(frame[:cut])


def test_other_versions_and_types_are_refused_by_name() -> None:
    newer = msgspec.msgpack.encode((VERSION + 1, "HeartbeatAck", {"term": 1}))
    with pytest.raises(FrameUnreadable, match=rf"has version {VERSION + 1}.*same version"):
        decode(newer)
    with pytest.raises(FrameUnreadable, match="no message 'Order'"):
        decode(msgspec.msgpack.encode((VERSION, "Order", {})))
    with pytest.raises(FrameUnreadable, match="term"):
        decode(msgspec.msgpack.encode((VERSION, "HeartbeatAck", {"term": "1"})))
    with pytest.raises(FrameUnreadable, match="missing"):
        decode(msgspec.msgpack.encode((VERSION, "HeartbeatAck", {})))


def test_no_message_is_forgotten() -> None:
    assert all(dataclasses.is_dataclass(kind) for kind in MESSAGES.values())
    assert sorted(MESSAGES) == [
        "Barrier",
        "BarrierAck",
        "DeployTask",
        "Heartbeat",
        "HeartbeatAck",
        "LookAtJob",
        "Looked",
        "SourceEndAck",
        "SourceEndReport",
        "StopTask",
    ]
    assert set(MESSAGES.values()) == {*get_args(ToWorker), *get_args(ToLeader)}
