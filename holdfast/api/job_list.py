"""Lists of jobs: those that the leader keeps, from memory; those that are over, from the catalog.

Nothing here waits for a worker, and on the leader nothing waits for the store either.  Rows are
built at most a few times a second however many people look.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.api.catalog import EndedJobs
from holdfast.api.job_graph import JobGraphs
from holdfast.api.live_views import live_row, row, row_of
from holdfast.api.status_board import StatusBoard
from holdfast.api.views import JobList, JobRow
from holdfast.core.job import TERMINAL
from holdfast.master.leader import Leader
from holdfast.master.master import Master

FRESH_S = 0.2
LIVING = ("RUNNING", "PENDING", "FAILING", "CANCELING", "DOING_SAVEPOINT")


@dataclass
class _Built:
    """Rows as of a moment."""

    key: object = None
    at_s: float = 0.0
    rows: list[JobRow] = field(default_factory=list)


class Listing:
    """All jobs that this master knows of."""

    def __init__(
        self, master: Master, board: StatusBoard, catalog: EndedJobs, sketches: JobGraphs
    ) -> None:
        self._master = master
        self._board = board
        self._catalog = catalog
        self._sketches = sketches
        self._live = _Built()
        self._over = _Built()

    async def jobs(
        self,
        leader: Leader | None,
        search: str = "",
        status: str = "",
        health: str = "",
        offset: int = 0,
        limit: int = 0,
        begin: str = "",
    ) -> JobList:
        """Return the jobs that are asked for, the newest first; `limit` 0: all of them."""
        if leader:
            rows, revision = (
                self._kept(leader),
                max((k.revision for k in leader.jobs.values()), default=0),
            )
        else:
            records, revision = await self._master.store.range("job/")
            rows = [row(item) for item in records]
        known = {(r.job_id, r.incarnation) for r in rows}
        over = await self._ended()
        everything = [*rows, *(r for r in over if (r.job_id, r.incarnation) not in known)]
        if begin:
            everything = [r for r in everything if r.job_id.startswith(begin)]
        everything.sort(key=lambda r: r.since_s, reverse=True)
        counts = dict(Counter(r.status for r in everything))
        wanted = [r for r in everything if _wanted(r, search.lower(), status, health)]
        page = wanted[offset : offset + limit] if limit else wanted[offset:]
        return JobList(revision, page, len(wanted), counts)

    def _kept(self, leader: Leader) -> list[JobRow]:
        """Return the rows of the jobs that the leader keeps, and of those it has just buried."""
        now_s = self._master.ports.clock.now()
        key = (leader.desk.term, self._board.version, len(leader.jobs))
        if self._live.key != key or now_s - self._live.at_s > FRESH_S:
            rows = [
                live_row(
                    leader, k, self._board.lives.get(k.state.id),
                    found.mode if (found := self._sketches.known(k.state)) else "",
                )
                for k in leader.jobs.values()
            ]  # fmt: skip
            rows += [
                JobRow(job, "", "", "DAMAGED", why, 0.0, 0.0)
                for job, why in leader.quarantined.items()
            ]
            rows += [row_of(j) for j in self._board.gone.values() if j.id not in leader.jobs]
            self._live = _Built(key, now_s, rows)
        return list(self._live.rows)

    async def _ended(self) -> Sequence[JobRow]:
        entries = await self._catalog.entries()
        if self._over.key != self._catalog.version:
            rows = [
                row_of(e.job) if e.job else JobRow(e.id, "", "", "DAMAGED", e.damage, 0.0, 0.0)
                for e in entries
            ]
            self._over = _Built(self._catalog.version, 0.0, rows)
        return self._over.rows


def _wanted(one: JobRow, search: str, status: str, health: str) -> bool:
    if search and search not in one.job_id.lower() and search not in one.name.lower():
        return False
    if health and (one.health != health.upper() or one.status in TERMINAL):
        return False
    match status.lower():
        case "":
            return True
        case "running":
            return one.status in LIVING
        case "ended":
            return one.status not in LIVING
    return one.status == status.upper()
