"""A changed job file, held against the one that a life ran with: real connectors, no processes."""

import json

import pytest

from holdfast.api.restoring import RestoreChoices, RestoredPositions, go_on
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.checkpoint import Totals
from holdfast.core.gather import Counts
from holdfast.core.saved_state import Saved, SavedKind, SavedPart
from holdfast.errors import UserError
from holdfast.master.admission import new_records
from holdfast.master.checkpoint_content import VERSION, CheckpointContent
from holdfast.master.restored_checkpoints import resumed
from holdfast.plan.load import parse_job
from holdfast.plan.promises import keyed
from holdfast.plan.record import JobSource, decode_spec, encode_spec

FILES = """LocalFile {{ plugin_output = {0}, path = "/data/{0}", file_format_type = text }}"""
SINK = """LocalFile {{ plugin_input = {0}, path = "/out/{0}" }}"""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load()


def spec(*parts: str, env: str = "job.mode = STREAMING") -> str:
    """A job file with these sources and sinks."""
    sources = "\n".join(p for p in parts if "plugin_input" not in p)
    sinks = "\n".join(p for p in parts if "plugin_input" in p)
    text = f"env {{ {env} }}\nsource {{\n{sources}\n}}\nsink {{\n{sinks}\n}}"
    tree = parse_job(text, "job.conf", {}, None, CheckReport())
    assert tree
    return encode_spec(JobSource("job.conf", tree))


def going(
    registry: Registry, before: str, after: str, maps: dict[str, str] | None = None, **given: bool
) -> RestoredPositions:
    planned = decode_spec(after).job(registry)
    return go_on(before, planned, registry, RestoreChoices(maps or {}, **given), "job j")


def test_sources_that_change_places_keep_their_positions(registry: Registry) -> None:
    a, b, c = FILES.format("a"), FILES.format("b"), FILES.format("c")
    to_a, to_b, to_c = SINK.format("a"), SINK.format("b"), SINK.format("c")
    found = going(registry, spec(a, b, to_a, to_b), spec(c, b, a, to_b, to_c, to_a))
    saved = [
        CheckpointContent(VERSION, "j", "1", n, 5, {f"Source[{n - 1}]-LocalFile": s}, (), n,
                {f"p{n}-t1": Counts(n)})
        for n, s in ((1, "at a"), (2, "at b"))
    ]  # fmt: skip
    contents = found.contents(saved, "j", "2")
    positions = {n: c.positions for n, c in contents.items()}
    # The pipeline of the source that is new has no position, but knows of tables.
    assert positions == {
        1: {},
        2: {"Source[1]-LocalFile": "at b"},
        3: {"Source[2]-LocalFile": "at a"},
    }
    saved = Saved(
        "j", "1", 1, SavedKind.SAVEPOINT, "j", "", tuple(
            SavedPart(n, "b", 5, 5, 10 * n, json.dumps({f"Sink[{n - 1}]-LocalFile": {"pending": n}}),  # noqa: E501
                      sources=(f"Source[{n - 1}]-LocalFile",), sinks=(f"Sink[{n - 1}]-LocalFile",))
            for n in (1, 2)
        ), Totals(), 0.0, 0.0, 0.0,
    )  # fmt: skip
    _, pipelines = new_records("j", "2", "token", "", found.move.after)
    commits = [p.commits for p in resumed(saved, found.move.moved, pipelines)]
    assert [(c.watermark, c.listeners) for c in commits] == [
        (None, ""),
        (20, '{"Sink[0]-LocalFile":{"pending":2}}'),
        (10, '{"Sink[2]-LocalFile":{"pending":1}}'),
    ]
    assert found.matching.said[0] == "Source[1]-LocalFile (path = /data/b) continues."


def test_every_mismatch_is_said_at_once(registry: Registry) -> None:
    before = spec(FILES.format("a"), FILES.format("b"), SINK.format("a"), SINK.format("b"))
    after = spec(FILES.format("a"), FILES.format("x"), SINK.format("a"), SINK.format("x"))
    with pytest.raises(UserError) as refused:
        going(registry, before, after)
    said = str(refused.value)
    assert refused.value.code == "restore.mismatch"
    assert said.startswith(
        "The job file does not fit what job j has saved, and nothing was started."
    )
    for old, new in (("/data/b", "/data/x"), ("/out/b", "/out/x")):
        assert f"(path = {old}) of the saved state is not in the job file" in said
        assert f"(path = {new}): --map" in said
    found = going(registry, before, after, allow_dropped=True)
    assert len(found.matching.dropped) == len(found.matching.new) == 2


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("job.mode = BATCH", "job.mode = STREAMING",
         "discovery_mode was once and is continuous"),
        ("job.mode = STREAMING", "job.mode = BATCH",
         "discovery_mode was continuous and is once"),
    ],
)  # fmt: skip
def test_files_by_name_and_files_by_age_are_not_taken_for_each_other(
    registry: Registry, before: str, after: str, why: str
) -> None:
    parts = (FILES.format("a"), SINK.format("a"))
    with pytest.raises(UserError) as refused:
        going(registry, spec(*parts, env=before), spec(*parts, env=after), allow_dropped=True)
    assert why in str(refused.value)


def test_a_moved_folder_is_refused_even_on_the_users_word(registry: Registry) -> None:
    before = spec(FILES.format("a").replace("plugin", "uid = u, plugin"), SINK.format("a"))
    after = before.replace("/data/a", "/data/moved")
    with pytest.raises(UserError, match="path was /data/a and is /data/moved"):
        going(registry, before, after, {"u": "u"})


def test_a_folder_may_be_written_otherwise(registry: Registry) -> None:
    before = spec(FILES.format("a"), SINK.format("a"))
    for same in ("/data/a/", "/data/../data/a", "file:///data/a"):
        found = going(registry, before, before.replace("/data/a", same))
        assert found.matching.said[0] == "Source[0]-LocalFile (path = /data/a) continues."


def test_a_sink_is_known_by_where_it_writes_whoever_logs_in(registry: Registry) -> None:
    sink = """Iceberg {{ plugin_input = a, namespace = n, table = t, catalog_name = c
    iceberg.catalog.config = {{ type = rest, uri = "http://h:1", token = "{0}" }} }}"""
    a = FILES.format("a")
    found = going(registry, spec(a, sink.format("old")), spec(a, sink.format("new")))
    assert found.matching.said[1] == (
        "Sink[0]-Iceberg (catalog_name = c, iceberg.catalog.config.type = rest,"
        " iceberg.catalog.config.uri = http://h:1, namespace = n, table = t) continues."
    )


def test_a_job_file_that_cannot_be_planned_any_more_is_refused_in_words(
    registry: Registry,
) -> None:
    good = spec(FILES.format("a"), SINK.format("a"))
    with pytest.raises(UserError) as refused:
        going(registry, good.replace('"LocalFile"', '"Vanished"'), good)
    assert refused.value.code == "restore.unplanned"
    assert "there is no source of this name" in str(refused.value)
    # An option that this version does not know any more is no reason.
    odd = spec(FILES.format("a").replace("path", "nonsense = 1, path"), SINK.format("a"))
    assert not going(registry, odd, good).matching.dropped


BY_KEY = [
    ('Jdbc { url = "jdbc:mysql://h/d", table = t, primary_keys = [id] }', True),
    ('Jdbc { url = "jdbc:mysql://h/d", table = t }', False),
    ('Jdbc { url = "jdbc:mysql://h/d", table = t, primary_keys = ["${primary_key}"] }', False),
    ('Paimon { warehouse = "/w", database = d, table = t, paimon.table.primary-keys = id,'
     ' paimon.table.write-props = { bucket = 1, sequence.field = id } }', True),
    ('Paimon { warehouse = "/w", database = d, table = t }', False),
    ('Delta { path = "/d" }', False),
    ('LocalFile { path = "/out" }', False),
]  # fmt: skip


@pytest.mark.parametrize(("sink", "by_key"), BY_KEY)
def test_sinks_that_replace_rows_by_their_keys_say_so(
    registry: Registry, sink: str, by_key: bool
) -> None:
    of_a = sink.replace("{", "{ plugin_input = a,", 1)
    assert keyed(decode_spec(spec(FILES.format("a"), of_a)).job(registry), registry) is by_key
    beside = spec(FILES.format("a"), of_a, SINK.format("a"))
    assert not keyed(decode_spec(beside).job(registry), registry), "one that adds is enough"
