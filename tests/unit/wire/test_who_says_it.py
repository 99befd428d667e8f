"""Every message says in which term it is said, and of which attempt of which life it speaks."""

from dataclasses import fields

import pytest

from holdfast.wire.codec import MESSAGES
from holdfast.wire.messages import Heartbeat, HeartbeatAck, LookAtJob, Looked


@pytest.mark.parametrize("kind", MESSAGES.values(), ids=lambda kind: kind.__name__)
def test_a_message_carries_term_incarnation_and_attempt(kind: type) -> None:
    names = {f.name for f in fields(kind)}
    assert "term" in names
    if kind is HeartbeatAck:
        return
    if kind is Heartbeat:
        assert {"incarnation", "sequence", "held"} <= names, "each thing held names its attempt"
        return
    if kind in (LookAtJob, Looked):
        assert "request" in names, "it is of no job that runs: it names who asked for it"
        return
    assert "key" in names, "job, incarnation, pipeline and task"
    assert names & {"attempt", "acked"}, "an answer to a barrier has its attempt inside"
