"""What goes wrong on a first day, provoked for real: the root cause first, in one sentence."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.provoked import SCENES, Scene, World, world

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def there() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="holdfast-errors-") as name:
        Path(name).chmod(0o755)  # user nobody must come through
        with world(Path(name)) as one:
            yield one


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_root_cause_is_said_first_and_by_whom(there: World, scene: Scene) -> None:
    if scene.small and os.geteuid() != 0:
        pytest.skip("this user may not mount a small disk")
    ran = there.provoke(scene)
    assert not there.wrong(scene, ran), ran.stdout
