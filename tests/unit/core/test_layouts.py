"""Records as this version keeps them in the store: a layout never changes unseen.

`python -m tests.unit.core.test_layouts` prints what `records_v1.json` holds: name -> value.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.master import checkpoint_content
from holdfast.master.checkpoint_content import CheckpointContent
from holdfast.master.event_log import (
    EndedCheckpoint,
    EventHistory,
    StatusChange,
    decode_past,
    encode_past,
)
from holdfast.master.records import VERSION, decode, encode
from tests.samples import full, same_layouts

FILE = Path(__file__).with_name(f"records_v{VERSION}.json")
JOB, PIPELINE, SAVED = full(JobRecord), full(PipelineRecord), full(Saved)
TRAIL = EventHistory((full(EndedCheckpoint),), (full(StatusChange),))
CONTENT = replace(full(CheckpointContent), version=checkpoint_content.VERSION)

LAYOUTS: dict[str, tuple[bytes, object, Callable[[bytes], object]]] = {
    "job": (encode(JOB), JOB, lambda value: decode(JobRecord, value)),
    "pipeline": (encode(PIPELINE), PIPELINE, lambda value: decode(PipelineRecord, value)),
    "saved": (encode(SAVED), SAVED, lambda value: decode(Saved, value)),
    "trail": (TRAIL.encoded(), TRAIL, lambda value: EventHistory.decoded(value, "trail/j/0000")),
    "past": (encode_past({1: TRAIL}), {1: TRAIL}, lambda value: decode_past(value, "past/j/i")),
    "checkpoint": (checkpoint_content.pack(CONTENT), CONTENT, checkpoint_content.read),
}


def values() -> dict[str, str]:
    """Return one value of each kind, as the store has it."""
    return {name: value.decode() for name, (value, _, _) in LAYOUTS.items()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_kept_records_are_read(name: str) -> None:
    _, expected, read = LAYOUTS[name]
    assert read(json.loads(FILE.read_text())[name].encode()) == expected


def test_no_record_has_changed() -> None:
    same_layouts(values(), FILE, "tests.unit.core.test_layouts")


def test_a_changed_layout_is_seen() -> None:
    changed = {**values(), "job": values()["job"].replace('"tags"', '"labels"')}
    with pytest.raises(AssertionError, match=r"The layout of job .* new version, keep a reader"):
        same_layouts(changed, FILE, "tests.unit.core.test_layouts")


if __name__ == "__main__":
    print(json.dumps(values(), indent=1))
