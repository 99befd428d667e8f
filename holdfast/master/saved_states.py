"""The leader's saved states: what incarnations have left, and which were restored from that.

A state is written with the end of its incarnation, and stays until it is removed or its time is
over.  Time is the cluster's own: the seconds that its leaders have led, so that no date can end a
state early.  It may stay longer, by what a leader had not yet written down when it died.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from holdfast.core.job import TERMINAL, JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved, SavedKind, leave
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.master import checkpoint_content
from holdfast.master.leader_store import LeaderStore
from holdfast.master.ports import Incarnation
from holdfast.master.records import SAVED, RecordUnreadable, decode, encode, saved_key
from holdfast.store.contract import COMMIT_KEYS_MAX, Delete, Guard, Put

HEIR = "heir/"
LED = "led"
UNASKED_MAX = 10
"""So many failures and cancels of one job are kept; savepoints are never too many."""

log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Heir:
    """An incarnation that was restored from a saved state, or has taken its place.

    `shown` says what it has shown, once it is over: (pipeline, number of the last commit).
    While it runs, that is not known.
    """

    job: str
    incarnation: str
    life: int
    over: bool = False
    shown: tuple[tuple[int, int], ...] = ()
    rows: int = 0

    @property
    def id(self) -> str:
        """What names it in records."""
        return f"{self.job}/{self.incarnation}"


@dataclass
class Kept:
    """A saved state with its revision."""

    saved: Saved
    revision: int


@dataclass
class Vault:
    """All saved states.  Changing one, or starting an incarnation from one, needs `lock`.

    `born` returns the incarnations of a job that have records; `needed` says whether a running
    incarnation has yet to finish the commits of a state.
    """

    desk: LeaderStore
    born: Callable[[str], set[str]]
    needed: Callable[[Saved], bool]
    states: dict[str, Kept] = field(default_factory=dict)
    heirs: dict[str, dict[str, Heir]] = field(default_factory=lambda: defaultdict(dict))
    damaged: dict[str, str] = field(default_factory=dict)
    bearing: set[str] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _leaving: dict[str, tuple[Saved | None, tuple[tuple[str, Heir | None], ...]]] = field(
        default_factory=dict
    )
    _led: tuple[float, int] = (0.0, 0)
    _since_s: float = 0.0

    async def load(self) -> None:
        """Read all states, who went on from them, and how long the cluster has been led."""
        for item in await self.desk.read_range(SAVED):
            name = item.key.removeprefix(SAVED)
            try:
                self.states[name] = Kept(decode(Saved, item.value), item.revision)
            except RecordUnreadable as error:
                if error.code == "record.version":
                    raise
                self.damaged[name] = str(error)
        for item in await self.desk.read_range(HEIR):
            one, two, _ = item.key.removeprefix(HEIR).split("/", 2)
            heir = msgspec.json.decode(item.value, type=Heir)
            self.heirs[f"{one}/{two}"][heir.id] = heir
        led = await self.desk.read(LED)
        if led:
            self._led = (msgspec.json.decode(led.value, type=float), led.revision)
        # A leader that died had led longer than it had written down: its states say so.  Without
        # that, what is left now could pass for older than what was left before.
        told_s = max((k.saved.made_s for k in self.states.values()), default=0.0)
        self._led = (max(self._led[0], told_s), self._led[1])
        self._since_s = self.desk.ports.clock.now()

    def led_s(self) -> float:
        """Return how long this cluster has been led, as far as it was written down."""
        return self._led[0] + self.desk.ports.clock.now() - self._since_s

    def of(self, job: str) -> list[Saved]:
        """Return what incarnations of a job have left to be restored, the newest first."""
        found = [k.saved for k in self.states.values() if job in ("", k.saved.job)]
        found = [s for s in found if not s.removed]
        return sorted(found, key=lambda s: (s.made_s, s.life), reverse=True)

    def last_life(self, job: str) -> int:
        """Return the highest number of an incarnation that a state of a job names; 0: none."""
        heirs = (heir for heirs in self.heirs.values() for heir in heirs.values())
        found = [k.saved.life for k in self.states.values() if k.saved.job == job]
        return max([*found, *(heir.life for heir in heirs if heir.job == job)], default=0)

    def keeps(self, job: str, incarnation: str) -> Saved | None:
        """Return what an incarnation has left, unless it is being removed."""
        kept = self.states.get(f"{job}/{incarnation}")
        return kept.saved if kept and not kept.saved.removed else None

    def may_sweep(self, job: str, incarnation: str) -> bool:
        """Say whether nothing that an incarnation has staged will be needed."""
        saved = self.keeps(job, incarnation)
        return not (saved and saved.unfinished) and f"{job}/{incarnation}" not in self.damaged

    def unwanted(self, job: str, incarnation: str, names: Iterable[str]) -> list[str]:
        """Return which blobs go with the records of an incarnation.

        They are its own that no state needs, and those of incarnations that never began, because
        their leader died before their records.
        """
        kept = {b for k in self.states.values() if not k.saved.removed for b in k.saved.blobs}
        begun = self.born(job) | self.bearing
        begun |= {k.saved.incarnation for k in self.states.values() if k.saved.job == job}
        begun |= {name.split("/")[1] for name in self.damaged}
        lives = {name: name.split("/")[1] for name in names}
        own = incarnation if f"{job}/{incarnation}" not in self.damaged else None
        return [
            n for n, life in lives.items() if n not in kept and (life == own or life not in begun)
        ]

    def ending(self, job: JobRecord, pipelines: tuple[PipelineRecord, ...]) -> list[Put | Delete]:
        """Return what is written with the end of an incarnation: what it leaves and has shown."""
        if job.status not in TERMINAL or not self.desk.settings.saves:
            return []
        saved = leave(job, pipelines, self.led_s())
        changes: list[Put | Delete] = []
        if saved:
            changes.append(Put(saved_key(saved.id), encode(saved)))
        heir = _over(job, pipelines, self.states)
        life = f"{job.id}/{job.incarnation}"
        noted = tuple((base, heir) for base, heirs in self.heirs.items() if life in heirs)
        changes += [_heir_change(base, life, h) for base, h in noted]
        self._leaving[life] = (saved, noted)
        return changes

    def ended(self, life: str, revision: int) -> None:
        """Note that the end of an incarnation is durable."""
        saved, noted = self._leaving.pop(life, (None, ()))
        if saved:
            self.states[saved.id] = Kept(saved, revision)
        for base, heir in noted:
            self._note_heir(base, life, heir)

    def begins(self, job: JobRecord, bases: Iterable[str]) -> list[Put | Delete]:
        """Return what is written with the begin of an incarnation that outdates states."""
        heir = Heir(job.id, job.incarnation, job.life)
        return [_heir_change(base, heir.id, heir) for base in bases]

    def begun(self, job: JobRecord, bases: Iterable[str]) -> None:
        """Note that the begin of an incarnation is durable."""
        heir = Heir(job.id, job.incarnation, job.life)
        for base in bases:
            self._note_heir(base, heir.id, heir)

    def past(self, saved: Saved) -> list[Heir]:
        """Return the incarnations that have shown more than a state holds, or that may do so yet.

        One that began from the same state as this one's is among them.
        """
        line, found = [saved.id], {}
        while True:
            found.update(self.heirs.get(line[-1], {}))
            origin = self.states[line[-1]].saved.origin if line[-1] in self.states else ""
            if not origin or origin in line:
                break
            line.append(origin)
        return [heir for name, heir in found.items() if name not in line]

    async def remove(self, saved: Saved) -> bool:
        """Have a state go; say whether it may.  What it needed goes a little later."""
        async with self.lock:
            kept = self.states.get(saved.id)
            if kept is None or kept.saved.removed:
                revision = kept.revision if kept else 0
                await self.desk.confirm(saved_key(saved.id), revision)
                return True
            if self.needed(saved):
                return False
            gone = replace(kept.saved, removed=True)
            revision = await self.desk.save(
                saved_key(saved.id), encode(gone), kept.revision, "saved.remove"
            )
            self.states[saved.id] = Kept(gone, revision)
            return True

    async def tidy(self) -> None:
        """Write down how long the cluster was led, and delete what is unneeded; never ends."""
        while True:
            await self._clear()
            await self.desk.ports.clock.sleep(self.desk.settings.tidy_s)
            if not self.states:
                continue
            now_s, (_, revision) = self.led_s(), self._led
            guard = [Guard(LED, revision)]
            put = [Put(LED, msgspec.json.encode(now_s))]
            self._led = (now_s, await self.desk.write(guard, put, LED, "saved.led"))
            self._since_s = self.desk.ports.clock.now()
            for saved in self._outlived(now_s):
                if await self.remove(saved):
                    log.info("saved state %s of job %s: its time is over", saved.life, saved.job)

    def _outlived(self, now_s: float) -> list[Saved]:
        """Return what no request keeps longer, and of each job's failures all but the latest."""
        found, seen = [], Counter[str]()
        for saved in self.of(""):
            asked = saved.kind is SavedKind.SAVEPOINT
            seen[saved.job] += not asked
            late = saved.retained_s and now_s - saved.made_s > saved.retained_s
            if late or (not asked and seen[saved.job] > UNASKED_MAX):
                found.append(saved)
        return found

    async def _clear(self) -> None:
        for kept in list(self.states.values()):
            # As long as its incarnation has a record its tasks may stage something.
            if kept.saved.removed and kept.saved.incarnation not in self.born(kept.saved.job):
                await self._go(kept)

    async def _go(self, kept: Kept) -> None:
        """Remove what a state needed, and the state last."""
        ports, saved = self.desk.ports, kept.saved
        life = Incarnation(saved.job, saved.incarnation, saved.spec)
        try:
            if saved.unfinished:
                await ports.durable("saved.sweep", lambda: ports.tables.sweep(life))
            names = await ports.blobs.names(checkpoint_content.prefix(saved.job, saved.incarnation))
            if names:
                await ports.durable("saved.drop", partial(ports.blobs.drop, *names))
        except (Unavailable, OutcomeUnknown):
            return  # it is tried again
        except UserError as error:
            log.warning("What job %s has staged is not removed: %s", saved.job, error)
        async with self.lock:
            heirs = self.heirs.get(saved.id, {})
            children = [k.saved.id for k in self.states.values() if k.saved.origin == saved.id]
            moved = [(c, n, h) for c in children for n, h in heirs.items() if n != c]
            changes = [_heir_change(child, name, heir) for child, name, heir in moved]
            changes += [_heir_change(saved.id, name, None) for name in heirs]
            changes.append(Delete(saved_key(saved.id)))
            guard = [Guard(saved_key(saved.id), kept.revision)]
            each = COMMIT_KEYS_MAX // 2
            for some in (changes[at : at + each] for at in range(0, len(changes), each)):
                await self.desk.write(guard, some, saved_key(saved.id), "saved.gone")
            for child, name, heir in moved:
                self._note_heir(child, name, heir)
            self.heirs.pop(saved.id, None)
            del self.states[saved.id]

    def _note_heir(self, base: str, life: str, heir: Heir | None) -> None:
        if heir:
            self.heirs[base][life] = heir
        else:
            self.heirs[base].pop(life, None)


def _over(
    job: JobRecord, pipelines: tuple[PipelineRecord, ...], states: dict[str, Kept]
) -> Heir | None:
    """Return what an incarnation has shown, or perhaps has; None if it surely has not."""
    shown = tuple((p.number, p.commits.through) for p in pipelines if p.commits.through)
    if not shown and not any(p.commits.waiting for p in pipelines):
        return None
    base = states.get(job.origin)
    before = base.saved.totals.written if base else 0
    rows = max(0, job.totals.written - before)
    return Heir(job.id, job.incarnation, job.life, True, shown, rows)


def _heir_change(base: str, life: str, heir: Heir | None) -> Put | Delete:
    key = f"{HEIR}{base}/{life}"
    return Put(key, msgspec.json.encode(heir)) if heir else Delete(key)
