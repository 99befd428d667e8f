"""Tables are opened once: their save modes are in one checkpoint, and in no later one."""

from collections.abc import Callable, Sequence

from holdfast.connect.options import options
from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import ANYBODY, Committable, Opening, Sink
from holdfast.core.gather import OpenedTable, StagedCommittable
from holdfast.model.job import Mode
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from holdfast.worker.task_runner import Openings
from tests.unit.worker.bench import ENDLESS, SOURCE, Bench
from tests.unit.worker.plugins import Cellar

Play = Callable[..., None]
SINK = "Sink[0]-Cellar"
EMPTIES = ENDLESS.replace("Cellar {}", "Cellar { empties = true }")


@options
class Nothing:
    pass


class Attic(Sink[Nothing]):
    """Gives save modes for every table, known or not; all of its tables go to one place."""

    name = "Attic"

    def __init__(self) -> None:
        super().__init__(Nothing(), PluginContext("7", "j", "s", Mode.BATCH))
        self.seen: list[Opening] = []

    def target(self, table: Table) -> str:
        return "attic"

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> list[Committable]:
        self.seen.append(opening)
        return [Committable(1, str(t.path), 0, 0, None, opening=True) for t in tables]


def table(path: str) -> Table:
    return Table(TablePath.parse(path), (Column("id", Type("bigint")),))


def test_a_table_is_opened_once_and_by_its_place_known_again() -> None:
    attic, openings = Attic(), Openings("7", "x")
    openings.open("s", attic, [table("a.b")])
    openings.open("s", attic, [table("a.b")])
    due, opened = openings.take(4)
    assert [(s.created, s.sink) for s in due] == [(4, "s")] and opened is not None
    assert opened == (OpenedTable("s", "a.b", "attic", "x"),)
    assert openings.take(5) == ([], opened), "what was taken is said once, what is open always"
    openings.open("s", attic, [table("a.c")])
    assert openings.take(6) == ([], opened), "another table of the same place has had its turn"
    assert attic.seen == [Opening("7.x"), Opening("7.x", frozenset({"a.c"}))]


def test_what_an_earlier_life_opened_is_this_ones_to_keep() -> None:
    attic = Attic()
    old = OpenedTable("s", "a.b", "elsewhere, before its path was changed", "w")
    later = Openings("7", "x", (old, OpenedTable("r", "a.z", "attic too", "x")))
    later.open("s", attic, [table("a.b")])
    assert later.take(1)[0] == []
    assert attic.seen == [Opening("7.x", frozenset({"a.b"}), frozenset({"a.b"}))]
    unknown = Openings("7", "x", None)
    unknown.open("s", attic, [table("a.new")])
    assert unknown.take(1) == ([], None), "a state that cannot say what it knows knows everything"


def test_one_checkpoint_brings_the_save_modes_whichever_attempt_answers(play: Play) -> None:
    async def part(bench: Bench) -> None:
        bench.deploy(EMPTIES.replace("= true }", "= true, sleep_ms = 60000 }", 1))
        await bench.until(lambda: Cellar.prepared)  # and stays in its first slice
        restored = ((SOURCE, 1),)
        bench.deploy(EMPTIES, attempt=2, positions=restored, opened=())
        await bench.until(lambda: Cellar.writes)
        first = await bench.acked(1, attempt=2)
        life = f"7.{bench.key.incarnation}"
        opened = (OpenedTable(SINK, "count", "Cellar:count", bench.key.incarnation),)
        assert _openings(first.staged) == [life] and first.opened == opened
        second = await bench.acked(2, attempt=2)
        assert [s.created for s in second.staged if _openings([s])] == [1]
        third = await bench.acked(3, through=2, attempt=2)
        assert _openings(third.staged) == [] and third.opened == opened
        bench.deploy(EMPTIES, attempt=3, positions=restored, opened=opened)
        await bench.until(lambda: len(Cellar.prepared) == 3)
        fourth = await bench.acked(4, attempt=3)
        assert _openings(fourth.staged) == [] and fourth.opened == opened
        assert Cellar.prepared == ["count(id)", "count(id)", "known count(id)"]

    play(part)


def _openings(staged: Sequence[StagedCommittable]) -> list[object]:
    contents = [s.content for s in staged]
    return [c["content"] for c in contents if isinstance(c, dict) and c["opening"]]
