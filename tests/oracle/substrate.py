"""K. The ground: what the store has answered stays."""

from collections.abc import Iterator

from tests.oracle.events import Write
from tests.oracle.story import Story


def revisions(story: Story) -> Iterator[str]:
    """I75: the store never goes back behind what it has answered."""
    last = 0
    for write in story.of(Write):
        if write.revision < last:
            yield f"I75 revision {write.revision} came after {last}"
        last = max(last, write.revision)


CHECKS = (revisions,)
