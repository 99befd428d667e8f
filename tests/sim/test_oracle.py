"""Every check passes the good story and fails a story that is broken in its place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HoldfastError
from tests.oracle import table
from tests.oracle.check import CHECKS, check_story, numbers
from tests.oracle.events import KINDS, Event, Write, from_line, to_line
from tests.oracle.promises import ELSEWHERE, PROMISES
from tests.oracle.story import Story, read_log
from tests.sim.engine.oracle import story_of
from tests.sim.engine.run import run_seed
from tests.sim.mutants import stories_commits, stories_liveness
from tests.sim.mutants.stories_lifecycle import BREAKS
from tests.sim.stories import Events, changed, good, saved, wrote

assert stories_commits and stories_liveness, "importing them adds their stories to BREAKS"

DOCS = Path(__file__).parent.parent.parent / "docs"


def claims() -> Iterator[tuple[str, str]]:
    for check in CHECKS:
        for number in numbers(check):
            yield number, check.__name__


@pytest.mark.parametrize("events", [good(), saved()], ids=["finished", "saved"])
def test_a_good_story_breaks_nothing(events: Events) -> None:
    assert check_story(Story(events)) == []


@pytest.mark.parametrize(
    ("number", "check", "broken"), BREAKS, ids=[f"{n}-{b.__name__}" for n, _, b in BREAKS]
)
def test_a_broken_story_is_found(number: str, check: Any, broken: Any) -> None:
    found = list(check(Story(broken(good()))))
    assert [text for text in found if text.startswith(f"{number} ")]


def test_every_check_has_a_story_that_breaks_each_of_its_invariants() -> None:
    shown = {(number, check.__name__) for number, check, _ in BREAKS}
    assert set(claims()) - shown == set()


def test_every_invariant_has_a_check_or_a_reason() -> None:
    checked = {number for number, _ in claims()}
    assert checked.isdisjoint(ELSEWHERE)
    assert checked | set(ELSEWHERE) == set(PROMISES)


def test_the_page_of_invariants_is_up_to_date() -> None:
    assert (DOCS / "invariants.md").read_text() == table.page()


def test_a_simulated_story_survives_being_written_down(tmp_path: Path) -> None:
    story = story_of(run_seed(1).world, [])
    log = tmp_path / "all.jsonl"
    log.write_text("".join(f"{to_line(e)}\n" for e in story.events))
    again = read_log([log])
    assert {type(e) for e in again.events} <= set(KINDS.values())
    assert sorted(map(repr, again.events)) == sorted(map(repr, story.events))
    assert check_story(again) == check_story(story) == []


def test_logs_are_merged_by_time_and_writes_by_revision(tmp_path: Path) -> None:
    events = good()
    late = changed(events, wrote(events, "pipeline/j/0001", 3), at=0.0)
    logs = [tmp_path / f"{n}.jsonl" for n in range(2)]
    for n, log in enumerate(logs):
        mine = [e for e in late if isinstance(e, Write) == bool(n)]
        log.write_text("".join(f"{to_line(e)}\n" for e in mine))
    told = [e.revision for e in read_log(logs).of(Write)]
    assert told == sorted(told)


def test_a_line_cut_short_by_a_kill_does_not_count(tmp_path: Path) -> None:
    log = tmp_path / "one.jsonl"
    log.write_text("".join(f"{to_line(e)}\n" for e in good()) + '{"kind":"left","thi')
    assert check_story(read_log([log])) == []


@pytest.mark.parametrize("line", ["{", '{"kind":"unheard of"}', '{"kind":"write"}', "[]"])
def test_a_damaged_line_is_refused(line: str) -> None:
    with pytest.raises(HoldfastError, match="cannot be read"):
        from_line(line)


@pytest.mark.parametrize("event", good(), ids=lambda e: type(e).__name__)
def test_every_event_survives_its_line(event: Event) -> None:
    assert from_line(to_line(event)) == event
