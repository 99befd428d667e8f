"""Whose position is whose, when a job file was changed."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.stage_match import Matching, match
from holdfast.model.identity import StageIdentity
from holdfast.model.job import Role

PLUGINS = ("LocalFile", "FakeSource")
PATHS = ("/a", "/b", "/c", "/d", "/e")


def stage(
    number: int, path: str, *, uid: str = "", name: str = "", plugin: str = "LocalFile",
    role: Role = Role.SOURCE, basis: str = "1",
) -> StageIdentity:  # fmt: skip
    what = (("path", path),) if path else ()
    named = (name,) if name else ()
    basis_of = (("parallelism", basis),) if role is Role.SOURCE else ()
    place = f"{role.capitalize()}[{number}]-{plugin}"
    return StageIdentity(place, role, plugin, uid, what, named, basis_of)


def placed(stages: Sequence[StageIdentity]) -> list[StageIdentity]:
    """The stages with the ids they have in this order."""
    return [
        replace(one, stage=f"{one.role.capitalize()}[{number}]-{one.plugin}")
        for number, one in enumerate(stages)
    ]


def same(one: StageIdentity, other: StageIdentity) -> bool:
    return replace(one, stage="") == replace(other, stage="")


different = st.lists(
    st.builds(
        stage,
        st.just(0),
        st.sampled_from(PATHS),
        uid=st.sampled_from(("", "", "u1", "u2", "u3")),
        name=st.sampled_from(("", "f", "g")),
        plugin=st.sampled_from(PLUGINS),
        role=st.sampled_from((Role.SOURCE, Role.SINK)),
    ),
    max_size=6,
    unique_by=(lambda s: (s.role, s.plugin, s.what), lambda s: (s.role, s.uid or s)),
)


@given(different, st.data())
def test_whoever_is_moved_inserted_or_removed_each_is_found_again(
    stages: list[StageIdentity], data: st.DataObject
) -> None:
    old = placed(data.draw(st.lists(st.sampled_from(stages), unique=True)) if stages else [])
    new = placed(data.draw(st.permutations(stages)))
    there = {replace(one, stage="") for one in old}
    found = match(old, new, {})
    assert found.mistakes == ()
    assert all(same(before, after) for before, after in found.kept)
    assert {before for before, _ in found.kept} == set(old)
    assert {n for n in new if replace(n, stage="") not in there} == set(found.new)
    back = match(new, old, {}, allow_dropped=True)
    assert set(back.dropped) == set(found.new) and not back.mistakes
    refused = match(new, old, {})
    assert len(refused.mistakes) == len(found.new)
    assert all(any(one.stage in m for m in refused.mistakes) for one in found.new)


anything = st.lists(
    st.builds(
        stage,
        st.just(0),
        st.sampled_from(PATHS[:2]),
        uid=st.sampled_from(("", "", "u1", "u2")),
        name=st.sampled_from(("", "f", "g")),
        plugin=st.sampled_from(PLUGINS),
    ),
    max_size=5,
    unique_by=lambda s: s.uid or id(s),
).map(placed)


@given(anything, anything)
def test_nobody_is_lost_or_taken_for_another_without_a_word(
    old: list[StageIdentity], new: list[StageIdentity]
) -> None:
    found = match(old, new, {})
    kept_old, kept_new = [o for o, _ in found.kept], [n for _, n in found.kept]
    # Each old stage goes on once or is said to be dropped, and each new one goes on or is new.
    assert sorted([*kept_old, *found.dropped], key=str) == sorted(old, key=str)
    assert sorted([*kept_new, *found.new], key=str) == sorted(new, key=str)
    for before, after in found.kept:
        assert before.plugin == after.plugin or found.mistakes
        assert not (before.uid and after.uid) or before.uid == after.uid
        assert before.uid == after.uid != "" or before.what == after.what
    assert bool(found.mistakes) >= bool(found.dropped)
    assert all(any(one.stage in m for m in found.mistakes) for one in found.dropped)


@given(anything)
def test_an_unchanged_file_always_goes_on_as_it_was(stages: list[StageIdentity]) -> None:
    found = match(stages, stages, {})
    assert found.mistakes == () and all(a is b for a, b in found.kept)
    assert len(found.kept) == len(stages)


def moved(found: Matching) -> dict[str, str]:
    assert found.mistakes == ()
    return found.moved


def test_two_that_say_the_same_are_told_apart_by_their_names() -> None:
    old = [stage(0, "/a", name="f"), stage(1, "/a", name="g")]
    new = [stage(0, "/a", name="g"), stage(1, "/a", name="f")]
    assert moved(match(old, new, {})) == {
        "Source[0]-LocalFile": "Source[1]-LocalFile",
        "Source[1]-LocalFile": "Source[0]-LocalFile",
    }
    renamed = [stage(0, "/a", name="h"), stage(1, "/a", name="g")]
    assert moved(match(old, renamed, {}))["Source[0]-LocalFile"] == "Source[0]-LocalFile"
    both = [stage(0, "/a", name="h"), stage(1, "/a", name="i")]
    (said,) = match(old, both, {}).mistakes
    assert "It is not clear which of Source[0]-LocalFile (path = /a), Source[1]" in said
    assert "--map old=new" in said and "uid" in said


def test_a_uid_wins_over_what_a_stage_says_and_a_new_one_may_be_given() -> None:
    old = [stage(0, "/a", uid="x"), stage(1, "/b")]
    new = [stage(0, "/b", uid="y"), stage(1, "/c", uid="x")]
    assert moved(match(old, new, {})) == {
        "Source[0]-LocalFile": "Source[1]-LocalFile",
        "Source[1]-LocalFile": "Source[0]-LocalFile",
    }
    other = match([stage(0, "/a", uid="x")], [stage(0, "/a", uid="z")], {})
    assert "uid = x" in other.mistakes[0] and "uid = z" in other.mistakes[0]
    assert other.kept == ()
    wrong = match([stage(0, "/a", uid="x")], [stage(0, "", uid="x", plugin="FakeSource")], {})
    assert wrong.mistakes == (
        "Source[0]-LocalFile (uid = x, path = /a) cannot continue as Source[0]-FakeSource"
        " (uid = x): one is a source LocalFile, the other a source FakeSource.",
    )


def test_a_changed_option_is_refused_with_old_and_new_and_what_to_say() -> None:
    old, new = [stage(0, "/a")], [stage(0, "/b")]
    (said,) = match(old, new, {}).mistakes
    assert said == (
        "Source[0]-LocalFile (path = /a) of the saved state is not in the job file. If it"
        " continues as Source[0]-LocalFile (path = /b): --map"
        " 'Source[0]-LocalFile=Source[0]-LocalFile'. If it shall end here:"
        " --map 'Source[0]-LocalFile=none', or --allow-dropped for all such."
    )
    word = {"Source[0]-LocalFile": "Source[0]-LocalFile"}
    assert moved(match(old, new, word)) == word
    given_up = match(old, new, {"Source[0]-LocalFile": "none"})
    assert given_up.mistakes == () and given_up.dropped == tuple(old)
    assert given_up.said == (
        "Source[0]-LocalFile (path = /b) is new: it is read from its beginning.",
        "Source[0]-LocalFile (path = /a) is dropped: where it had read to is forgotten.",
    )


def test_a_position_that_would_mean_another_place_is_refused_even_on_the_users_word() -> None:
    old, new = [stage(0, "/a", basis="2")], [stage(0, "/a", basis="4")]
    for maps in ({}, {"Source[0]-LocalFile": "Source[0]-LocalFile"}):
        (said,) = match(old, new, maps, allow_dropped=True).mistakes
        assert "parallelism was 2 and is 4" in said
        assert "--map 'Source[0]-LocalFile=none'" in said
    assert match(old, new, {"Source[0]-LocalFile": "none"}).mistakes == ()


def test_the_users_word_is_checked() -> None:
    old = [stage(0, "/a", uid="x"), stage(1, "/b")]
    new = [stage(0, "/a", uid="x"), stage(1, "", plugin="FakeSource")]
    (unknown, *_) = match(old, new, {"y": "x"}).mistakes
    assert unknown == (
        "--map: the saved state has no stage y. It has: Source[0]-LocalFile, Source[1]-LocalFile."
    )
    twice = match(old, new, {"x": "x", "Source[1]-LocalFile": "x"}).mistakes
    assert "--map: x of the job file is named twice. Name each once." in twice
    other = match(old, new, {"Source[1]-LocalFile": "Source[1]-FakeSource"}).mistakes
    assert any("one is a source LocalFile, the other a source FakeSource" in m for m in other)


def test_sinks_are_matched_as_sources_are_and_what_that_means_is_said() -> None:
    old = [stage(0, "/a", role=Role.SINK), stage(1, "/b", role=Role.SINK)]
    new = [stage(0, "/b", role=Role.SINK), stage(1, "/c", role=Role.SINK)]
    found = match(old, new, {}, allow_dropped=True)
    assert found.said == (
        "Sink[0]-LocalFile (path = /b) continues as Sink[1]-LocalFile (path = /b) stopped.",
        "Sink[1]-LocalFile (path = /c) is new: it gets rows from now on, none of those read"
        " before.",
        "Sink[0]-LocalFile (path = /a) is dropped: it gets no more rows, and what it has stays.",
    )
