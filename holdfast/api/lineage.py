"""Report the runs of jobs to a lineage server, as OpenLineage events (2-0-2).

Events are read from the job's record and its trail: every leader sends the same run, event and
date, so a new leader that sends an event again changes nothing.  Jobs never wait for it: a server
that is slow, gone or wrong costs events, which are counted.
"""

import asyncio
import contextlib
import logging
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import httpx2

from holdfast.api.job_graph import JobGraph, JobGraphs
from holdfast.api.status_board import JobStatusView, StatusBoard
from holdfast.config import OpenLineage
from holdfast.core.checkpoint import Totals
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.plan.masking import masked_text

log = logging.getLogger("holdfast")

SPEC = "https://openlineage.io/spec"
EVENT = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
VERSION = version("holdfast")
PRODUCER = f"https://pypi.org/project/holdfast/{VERSION}"
RUNS = uuid.uuid5(uuid.NAMESPACE_URL, "https://pypi.org/project/holdfast/runs")

ENDS = {
    JobStatus.FINISHED: "COMPLETE",
    JobStatus.SAVEPOINT_DONE: "COMPLETE",  # all that it has read is written; another run continues
    JobStatus.CANCELED: "ABORT",
    JobStatus.FAILED: "FAIL",
}
QUEUED_MAX = 2_000
TRIES_MAX = 8
WAIT_S, WAIT_S_MAX = 0.5, 30.0
TIMEOUT_S = 10.0
LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class LineageEvent:
    """One event to be sent."""

    kind: str
    at_s: float
    job: JobRecord
    totals: Totals | None = None


@dataclass
class SentEvents:
    """What this process has sent about one incarnation of a job."""

    started: bool = False
    ended: bool = False
    running_s: float = 0.0


class Lineage:
    """The events on their way to the server, and how many there were."""

    def __init__(self, options: OpenLineage, sketches: JobGraphs) -> None:
        self._options = options
        self._sketches = sketches
        self._where = urlsplit(options.url).netloc
        self._queue: asyncio.Queue[LineageEvent] = asyncio.Queue(QUEUED_MAX)
        self._told: dict[tuple[str, str], SentEvents] = {}
        self._trouble = ""
        self.sent = 0
        self.failures = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many events wait to be sent."""
        return self._queue.qsize()

    async def run(self, board: StatusBoard) -> None:
        """Send what the board shows, until cancelled."""
        sending = asyncio.ensure_future(self._send())
        version = -1
        try:
            while not sending.done():
                self.look(board)
                version = await board.changed(version, LOOK_S)
                await asyncio.sleep(LOOK_S / 5)  # one look for many changes
            sending.result()  # raises what ended it
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending

    def look(self, board: StatusBoard) -> None:
        """Take in what is new."""
        seen = set()
        for sight in chain(board.past.values(), board.lives.values()):
            life = (sight.job.id, sight.job.incarnation)
            seen.add(life)
            self._follow(sight, self._told.setdefault(life, SentEvents()))
        self._told = {life: told for life, told in self._told.items() if life in seen}

    def _follow(self, sight: JobStatusView, told: SentEvents) -> None:
        job = sight.job
        over = job.status in TERMINAL
        if not told.started and job.status is not JobStatus.PENDING:
            told.started = self._take(LineageEvent("START", sight.started_s or job.since_s, job))
        if over and told.started and not told.ended:
            told.ended = self._take(LineageEvent(ENDS[job.status], job.ended_s, job, job.totals))
        latest = [p.checkpoints.latest for p in sight.pipelines.values()]
        at_s = max((c.at_s for c in latest if c), default=0.0)
        due = at_s >= told.running_s + self._options.running_s
        # The end of a job matters more than one more RUNNING.
        if not over and told.started and due and self.waiting < QUEUED_MAX // 2:
            told.running_s = at_s
            totals = sum((c.totals for c in latest if c), Totals())
            self._take(LineageEvent("RUNNING", at_s, job, totals))

    def _take(self, fact: LineageEvent) -> bool:
        """Queue an event; one for which there is no room is counted and not sent."""
        try:
            self._queue.put_nowait(fact)
        except asyncio.QueueFull:
            self.dropped += 1
        return True

    async def _send(self) -> None:
        key = self._options.api_key
        headers = {"Authorization": f"Bearer {key.reveal()}"} if key else {}
        async with httpx2.AsyncClient(timeout=TIMEOUT_S, headers=headers) as http:
            while True:
                fact = await self._queue.get()
                sketch = await self._sketches.of(fact.job)
                await self._deliver(http, event_of(fact, sketch, self._options.namespace))

    async def _deliver(self, http: httpx2.AsyncClient, event: dict[str, Any]) -> None:
        """Send one event, again for a while where that may help."""
        wait_s = WAIT_S
        for _ in range(TRIES_MAX):
            try:
                answer = await http.post(self._options.url, json=event)
            except httpx2.HTTPError as error:
                self._fails(f"{type(error).__name__}: {error}")
            else:
                if answer.is_success:
                    self._works()
                    return
                self._fails(f"it answers {answer.status_code}")
                if answer.status_code < 500 and answer.status_code not in (408, 429):
                    break  # it will never take this one
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, WAIT_S_MAX)
        self.dropped += 1

    def _fails(self, why: str) -> None:
        self.failures += 1
        if why != self._trouble:
            log.warning("lineage events do not reach %s: %s", self._where, masked_text(why))
        self._trouble = why

    def _works(self) -> None:
        self.sent += 1
        if self._trouble:
            log.info("lineage events reach %s again", self._where)
        self._trouble = ""


def run_id(job: JobRecord) -> str:
    """Return the id of a run: the same for every leader that reports it."""
    return str(uuid.uuid5(RUNS, f"{job.id}/{job.incarnation}"))


def event_of(fact: LineageEvent, sketch: JobGraph, namespace: str) -> dict[str, Any]:
    """Return an event as OpenLineage's schema wants it."""
    job = fact.job
    run_facets = {
        "processing_engine": _facet(
            "1-1-0/ProcessingEngineRunFacet", name="Holdfast", version=VERSION
        )
    }
    if fact.kind == "FAIL":
        run_facets["errorMessage"] = _facet(
            "1-0-0/ErrorMessageRunFacet",
            message=masked_text(job.reason) or "It failed.",
            programmingLanguage="Python",
        )
    job_type = _facet(
        "2-0-4/JobTypeJobFacet",
        processingType="STREAMING" if sketch.mode == "STREAMING" else "BATCH",
        integration="HOLDFAST",
        jobType="JOB",
    )
    outputs: list[dict[str, Any]] = [d._asdict() for d in sketch.outputs]
    if fact.totals and len(outputs) == 1:
        written = _facet(
            "1-0-1/OutputStatisticsOutputDatasetFacet",
            rowCount=fact.totals.written,
            size=fact.totals.bytes,
        )
        outputs[0]["outputFacets"] = {"outputStatistics": written}
    return {
        "eventType": fact.kind,
        "eventTime": datetime.fromtimestamp(fact.at_s, UTC).isoformat(timespec="milliseconds"),
        "run": {"runId": run_id(job), "facets": run_facets},
        "job": {
            "namespace": namespace,
            "name": job.name or job.id,
            "facets": {"jobType": job_type},
        },
        "inputs": [d._asdict() for d in sketch.inputs],
        "outputs": outputs,
        "producer": PRODUCER,
        "schemaURL": EVENT,
    }


def _facet(schema: str, **fields: object) -> dict[str, object]:
    name = schema.rpartition("/")[2]
    url = f"{SPEC}/facets/{schema}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **fields}
