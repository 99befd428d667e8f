"""Frames of every message as this version of the wire has them: a layout never changes unseen.

`python -m tests.unit.wire.test_frames` prints what `frames_v2.json` holds: name -> frame, in hex.
"""

import json
from pathlib import Path

import pytest

from holdfast.wire.codec import MESSAGES, VERSION, decode, encode
from tests.samples import full, same_layouts

FILE = Path(__file__).with_name(f"frames_v{VERSION}.json")
SAMPLES = {name: full(kind) for name, kind in MESSAGES.items()}


def frames() -> dict[str, str]:
    """Return one frame of each message."""
    return {name: encode(message).hex() for name, message in SAMPLES.items()}


@pytest.mark.parametrize("name", MESSAGES)
def test_kept_frames_are_read(name: str) -> None:
    assert decode(bytes.fromhex(json.loads(FILE.read_text())[name])) == SAMPLES[name]


def test_no_frame_has_changed() -> None:
    same_layouts(frames(), FILE, "tests.unit.wire.test_frames")


def test_a_changed_layout_is_seen() -> None:
    changed = {**frames(), "Barrier": encode(SAMPLES["StopTask"]).hex()}
    with pytest.raises(
        AssertionError, match=r"The layout of Barrier .* new version, keep a reader"
    ):
        same_layouts(changed, FILE, "tests.unit.wire.test_frames")
    with pytest.raises(AssertionError, match="The layout of Added"):
        same_layouts({**frames(), "Added": ""}, FILE, "tests.unit.wire.test_frames")


if __name__ == "__main__":
    print(json.dumps(frames(), indent=1))
