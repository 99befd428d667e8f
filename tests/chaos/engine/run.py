"""Run scenarios one after another on one cluster, judge each, and write down what came of it."""

import asyncio
import json
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic

from holdfast.errors import HoldfastError, UserError
from tests.chaos.engine.client import Client
from tests.chaos.engine.cluster import TOKEN, WORKERS, Cluster
from tests.chaos.engine.jobs import ONCE
from tests.chaos.engine.ledger import tell
from tests.chaos.engine.scene import Missed, Scenario, Scene, Wrong
from tests.chaos.engine.tail import Tail
from tests.oracle.check import check_story
from tests.oracle.events import Event, Fault, Left, to_line

SCENARIO_S = 180.0
READY_S = 300.0
BROKEN_MAX = 3
"""So many clusters in a row that do not get ready end a run: the machine cannot carry it."""

WAIVED = ("I17",)
"""I17 judges by who knew what when, which the logs of real processes do not say."""

STAYS = ("history/", "past/", "saved/", "heir/")
"""What stays when a job's cleanup is over."""


@dataclass
class Result:
    """What came of a scenario."""

    id: str
    store: str
    window_hit: bool = False
    flaws: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    took_s: float = 0.0
    kept: str = ""
    """The folder with everything that is known of a scenario that failed."""

    @property
    def ok(self) -> bool:
        """Whether the window was hit and all is well."""
        return self.window_hit and not self.flaws

    def line(self) -> str:
        """Return it as one line."""
        hit = str(self.window_hit).lower()
        word = "ok" if self.ok else "FAILED"
        return f"{self.id:<68} {self.store:<8} window_hit={hit:<5} {word:<6} {self.took_s:6.1f} s"

    def told(self) -> Iterator[str]:
        """Yield its line, what is worth knowing, what is wrong, and what to do about that."""
        yield self.line()
        yield from (f"    {text.rstrip()}" for text in (*self.remarks, *self.flaws))
        if not self.ok:
            key = self.id.split()[0]
            yield f"    kept: {self.kept} (logs/ of every process, events/, *.story.jsonl)"
            yield f"    again: make chaos STORE={self.store} ONLY={key}"


def _say(result: Result) -> None:
    print("\n".join(result.told()), flush=True)


class Runner:
    """One cluster, and the scenarios run on it so far."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.results: list[Result] = []
        self._cluster: Cluster | None = None
        self._tail: Tail | None = None
        self._clusters = 0

    async def run(
        self, scenarios: Sequence[Scenario], said: Callable[[Result], None] = _say
    ) -> list[Result]:
        """Run scenarios; a cluster that a failed one leaves behind is kept for a look.

        `said` hears of each as soon as it is over.
        """
        broken = 0
        try:
            for number, scenario in enumerate(scenarios, 1):
                result = Result(scenario.id, self.kind)
                try:
                    cluster = await self._ready()
                    broken = 0
                    await self._one(cluster, scenario, number, result)
                except Exception:  # noqa: BLE001  whatever it is, the others are worth their run
                    result.flaws.append(traceback.format_exc(limit=-4))
                    broken += not result.took_s
                self.results.append(result)
                result.kept = str(self._cluster.folder) if self._cluster and not result.ok else ""
                said(result)
                if not result.ok:
                    await self._close(keep=True)
                if broken >= BROKEN_MAX:
                    raise UserError(
                        f"{broken} clusters in a row did not get ready within {READY_S:.0f} s; the"
                        f" rest was not run. See {self.folder}: store/log and logs/ say why."
                    )
        finally:
            await self._close(keep=False)
        return self.results

    async def _ready(self) -> Cluster:
        """Return a cluster in which everyone is there and Spark is warm."""
        if self._cluster is None:
            self._clusters += 1
            folder = self.folder / f"{self.kind}-{self._clusters}"
            shutil.rmtree(folder, ignore_errors=True)
            self._cluster = Cluster(self.kind, folder)
            self._tail = Tail(self._cluster.events)
            await self._cluster.start()
            await asyncio.wait_for(self._warm(self._cluster), READY_S)
        await asyncio.wait_for(self.all_there(self._cluster), READY_S)
        return self._cluster

    @staticmethod
    async def all_there(cluster: Cluster) -> None:
        """Wait until the leader hears all workers, and Spark runs on each: it is slow to start."""
        client = Client(cluster.urls, TOKEN)
        while await client.workers() < len(WORKERS):
            await asyncio.sleep(0.1)
        while not all(w.said("Spark is ready") for w in cluster.workers.values()):
            await asyncio.sleep(0.1)

    async def _warm(self, cluster: Cluster) -> None:
        """Run a job on every worker: the first one waits for Spark, and is no measure."""
        await self.all_there(cluster)
        warm = Scenario("warm", "up", nothing, ONCE)
        assert self._tail
        scene = Scene(cluster, warm, f"warm{self._clusters}", self._tail)
        await scene.submit()
        await scene.rest()

    async def _one(self, cluster: Cluster, scenario: Scenario, number: int, result: Result) -> None:
        assert self._tail
        self._tail.forget()
        scene = Scene(cluster, scenario, f"{scenario.key.lower()}-{number}", self._tail)
        scene.noted.append(cluster.setting())
        await asyncio.to_thread(scene.sink.start)
        began_s = monotonic()
        try:
            await asyncio.wait_for(self._play(scene), SCENARIO_S)
            result.window_hit = True
        except Missed as error:
            result.flaws.append(f"the window was not hit: {error}")
        except Wrong as error:
            result.window_hit = True
            result.flaws.append(str(error))
        except TimeoutError:
            result.window_hit = scene.hits > 0
            result.flaws.append(f"stuck after {SCENARIO_S:.0f} s: {_standing(scene)}")
        except (AssertionError, HoldfastError, LookupError, OSError):
            # A flaw of the harness or the cluster; the other scenarios are still worth their run.
            result.flaws.append(traceback.format_exc(limit=-4))
        result.took_s, result.remarks = monotonic() - began_s, scene.remarks
        if result.ok:
            # What a killed worker ran is known to be over when it has come back.
            await asyncio.wait_for(self.all_there(cluster), READY_S)
            result.flaws += judge(scene)
        cluster.points.clear()

    async def _play(self, scene: Scene) -> None:
        await scene.scenario.script(scene)
        await asyncio.to_thread(scene.cluster.heal)
        scene.noted.append(Fault(at=monotonic(), process="world", fault="heal"))
        await scene.answered()
        await scene.rest()

    async def _close(self, *, keep: bool) -> None:
        if self._cluster:
            cluster, self._cluster = self._cluster, None
            await cluster.close()
            if not keep:
                cluster.remove()


def judge(scene: Scene) -> list[str]:
    """Show the story to the oracle, and the rows to a reader; return what is wrong."""
    found = []
    for name, job in scene.jobs.items():
        if job.ended != job.ends:
            found.append(f"{name} ended as {job.ended}, not {job.ends}")
        if job.emptied:
            continue
        others = [o for o in scene.jobs.values() if o is not job and not o.emptied]
        beside = [o.shape for o in others if o.out == job.out]
        finished = job.ends == "FINISHED"
        said = job.shape.flaws(job.out, finished, job.sink, beside)
        found += [f"{name}: {f}" for f in said]
    left: list[Event] = [Left(at=monotonic(), process="world", thing=t) for t in _left(scene)]
    ids = [job.id for job in scene.jobs.values()]
    cluster = scene.cluster
    story = tell(cluster.ledger, cluster.events, ids, scene.since_s, [*scene.noted, *left])
    waived = (*WAIVED, *scene.scenario.waived)
    found += [t for t in check_story(story) if not t.startswith(waived)]
    if found:
        lines = [to_line(e) for e in story.events]
        (cluster.folder / f"{scene.prefix}.story.jsonl").write_text("\n".join(lines) + "\n")
    return found


def _left(scene: Scene) -> list[str]:
    """Return what the jobs of a scene have left behind."""
    found = []
    for job in scene.jobs.values():
        keys = [k for k in scene.cluster.ledger.values if k.split("/")[1:2] == [job.id]]
        found += [f"key {k}" for k in keys if not k.startswith(STAYS)]
        states = [state for state in scene.states() if state.job == job.id]
        kept = {scene.cluster.folder / "blobs" / name for s in states for name in s.blobs}
        blobs = scene.cluster.folder / "blobs" / job.id
        found += [f"blob {p}" for p in sorted(blobs.rglob("*")) if p.is_file() and p not in kept]
        if not any(state.unfinished for state in states):
            found += [f"staged {name}" for name in job.shape.left(job.out, job.sink)]
    return found


def _standing(scene: Scene) -> str:
    """Say how things stand, for someone who must find out why they do not move."""
    ledger = scene.cluster.ledger
    said = [f"leader {ledger.leader()}", f"{scene.hits} hits"]
    for job in scene.jobs.values():
        record = ledger.job(job.id)
        said.append(f"{job.id} {record.status if record else ledger.end(job.id)}")
    dead = [p.name for p in (*scene.cluster.masters.values(), *scene.cluster.workers.values())
            if not p.alive]  # fmt: skip
    return ", ".join([*said, f"dead {dead}" if dead else "all alive"])


async def nothing(scene: Scene) -> None:
    """Do no harm."""


def write_down(results: list[Result], path: Path) -> None:
    """Write the results as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(r), "ok": r.ok} for r in results]
    path.write_text(json.dumps(rows, indent=2) + "\n")
