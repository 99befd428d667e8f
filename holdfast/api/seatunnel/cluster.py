"""SeaTunnel's REST v2 about nodes: 1 overview, 7 monitoring, 14 tags, 15-17 logs, 19-20 threads."""

import asyncio
import gc
import os
import platform
import resource
import sys
import threading
import traceback
from html import escape
from importlib.metadata import version

import msgspec

from holdfast.api.logs import JOB_LOG, job_log, log_tail
from holdfast.api.route import ApiRequest, Permission, Route, TextAnswer
from holdfast.api.seatunnel.views import LogLink, OverviewInfo, Status, ThreadView
from holdfast.api.service import Api
from holdfast.errors import UserError
from holdfast.master.health import Health

READ, ADMIN = Permission.READ, Permission.ADMIN
QUEUES = (
    "async", "client", "client.query", "client.blocking", "query", "scheduled", "io", "system",
    "operations", "priorityOperation", "mapLoad", "mapLoadAllKeys", "cluster", "response",
)  # fmt: skip
TAGS_MAX = 100


class LogsAsked(msgspec.Struct):
    """As data or as a page."""

    format: str = "json"


class ClusterV2:
    """The handlers."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.tags: dict[str, str] = {}

    def routes(self) -> list[Route]:
        """Return the paths."""
        links = list[LogLink]
        return [
            Route("GET", "/overview", READ, self.overview, OverviewInfo,
                  "1. The cluster in figures; any other parameter filters workers by a tag."),
            Route("GET", "/system-monitoring-information", READ, self.monitoring,
                  list[dict[str, str]], "7. The nodes and how they are."),
            Route("POST", "/update-tags", ADMIN, self.update_tags, Status,
                  "14. Set the tags of this master; {} clears them.", body=bytes, order=True,
                  leads=False),
            Route("GET", "/logs", ADMIN, self.logs, links, "15. All logs of this master.",
                  LogsAsked, leads=False),
            Route("GET", "/logs/{jobId}", READ, self.logs, links, "15. The log of a job.",
                  LogsAsked, leads=False),
            Route("GET", "/log", ADMIN, self.logs, links, "16. The logs of this node.", LogsAsked,
                  leads=False),
            Route("GET", "/log/{name}", READ, self.log, TextAnswer, "16. The text of a log.",
                  leads=False),
            Route("GET", "/get-all-log-name", ADMIN, self.names, list[str],
                  "17. The names of the logs.", leads=False),
            Route("GET", "/thread-dump", ADMIN, self.threads, list[ThreadView],
                  "19. Where each thread of this master is.", leads=False),
            Route("GET", "/running-threads", ADMIN, self.running_threads, list[str],
                  "20. The names of the threads of this master.", leads=False),
        ]  # fmt: skip

    async def overview(self, ask: ApiRequest) -> OverviewInfo:
        jobs = (await self.api.jobs()).jobs
        leader, mark = self.api.leading(), await self.api.mark()
        crew = (await self.api.cluster()).workers if leader else []
        crew = [w for w in crew if all(w.tags.get(k) == v for k, v in ask.raw_query.items())]
        counts: dict[str, int] = {}
        for job in jobs:
            counts[job.status] = counts.get(job.status, 0) + 1
        living = [j for j in jobs if not j.ended_s]
        slots, used = sum(w.slots for w in crew), sum(w.used for w in crew)
        return OverviewInfo(
            projectVersion=version("holdfast"),
            gitCommitAbbrev="",
            totalSlot=str(slots),
            unassignedSlot=str(max(0, slots - used)),
            workers=str(len(crew)),
            works=str(len(crew)),
            runningJobs=str(sum(j.status not in ("PENDING", "DAMAGED") for j in living)),
            finishedJobs=str(counts.get("FINISHED", 0) + counts.get("SAVEPOINT_DONE", 0)),
            failedJobs=str(counts.get("FAILED", 0)),
            cancelledJobs=str(counts.get("CANCELED", 0)),
            pendingJobs=str(counts.get("PENDING", 0)),
            leader=mark.name if mark else "",
            term=str(leader.desk.number) if leader else "",
            stalledJobs=str(sum(j.health == Health.STALLED for j in living)),
            lateJobs=str(sum(j.health == Health.LATE for j in living)),
        )

    async def monitoring(self, ask: ApiRequest) -> list[dict[str, str]]:
        """Return this master, and the workers with what their heartbeats tell."""
        leader = self.api.leading()
        nodes = [self._this_node(leading=leader is not None)]
        for worker in (await self.api.cluster()).workers if leader else ():
            nodes.append(
                {"host": worker.worker, "port": "0", "isMaster": "false", "nodeRole": "worker",
                 "coordinator": "false", "worker": "true", "slots.total": str(worker.slots),
                 "slots.used": str(worker.used), "heard.seconds.ago": f"{worker.heard_s_ago:.1f}",
                 **{f"tag.{k}": v for k, v in worker.tags.items()}}
            )  # fmt: skip
        wanted = {f"tag.{k}": v for k, v in ask.raw_query.items()}
        return [n for n in nodes if all(n.get(k) == v for k, v in wanted.items())]

    async def update_tags(self, ask: ApiRequest) -> Status:
        if not ask.body.strip():
            return Status("fail", "Request body is empty.")
        try:
            tags = msgspec.json.decode(ask.body, type=dict[str, str])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return Status("fail", "Invalid JSON format in request body.")
        if len(tags) > TAGS_MAX:
            raise UserError(f"A node has at most {TAGS_MAX} tags.", code="request")
        self.tags = tags
        return Status("success", "update node tags done.")

    async def logs(self, ask: ApiRequest) -> object:
        job = ask.path.get("jobId")
        names = [job_log(job)] if job else self._names()
        node = self.api.master.name
        found = [LogLink(node, f"{self.api.master.url}/log/{n}", n) for n in names]
        if ask.query.format != "html":
            return found
        items = "".join(
            f'<li><a href="{escape(f.logLink)}">{escape(f.logName)}</a></li>' for f in found
        )
        page = f"<!doctype html><title>Logs</title><ul>{items}</ul>"
        return TextAnswer(page.encode(), "text/html; charset=utf-8")

    async def log(self, ask: ApiRequest) -> TextAnswer:
        """Return a log: this master's whole one for admins, else what it says about one job."""
        name = ask.path["name"]
        file = self.api.log_file
        about = JOB_LOG.fullmatch(name)
        if about:
            lines = (await self.api.logs(about[1])).lines
            return TextAnswer(
                "".join(f"{msgspec.json.encode(x).decode()}\n" for x in lines).encode()
            )
        if file is None or name != file.name:
            raise UserError("There is no such log here.", code="path.unknown")
        if not ask.who.may(ADMIN):
            raise UserError("Only an admin may read the whole log.", code="token.role")
        return TextAnswer(await asyncio.to_thread(log_tail, file))

    async def names(self, ask: ApiRequest) -> list[str]:
        return self._names()

    async def threads(self, ask: ApiRequest) -> list[ThreadView]:
        frames = sys._current_frames()
        return [
            ThreadView(
                t.name, t.ident or 0, "RUNNABLE" if t.is_alive() else "TERMINATED", t.daemon,
                [f"{f.name} ({f.filename.rpartition('/')[2]}:{f.lineno})"
                 for f in traceback.extract_stack(frames[t.ident])]
                if t.ident in frames else [],
            )
            for t in threading.enumerate()
        ]  # fmt: skip

    async def running_threads(self, ask: ApiRequest) -> list[str]:
        return [t.name for t in threading.enumerate()]

    def _names(self) -> list[str]:
        own = [self.api.log_file.name] if self.api.log_file else []
        leader = self.api.leading()
        return own + [job_log(job) for job in (leader.jobs if leader else ())]

    def _this_node(self, *, leading: bool) -> dict[str, str]:
        """Return this process in SeaTunnel's words.  It has no such queues, so they are empty."""
        used = _resident_bytes()
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        total, free = pages * page, os.sysconf("SC_AVPHYS_PAGES") * page
        times, load = os.times(), os.getloadavg()
        collected = gc.get_stats()
        minor = sum(s["collections"] for s in collected[:2])
        host, _, port = self.api.master.url.rpartition("://")[2].partition(":")
        node = {
            "host": host or platform.node(), "port": port or "0", "isMaster": str(leading).lower(),
            "nodeRole": "master", "coordinator": str(leading).lower(), "worker": "false",
            "processors": str(os.cpu_count() or 1),
            "physical.memory.total": _size(total), "physical.memory.free": _size(free),
            "swap.space.total": "0", "swap.space.free": "0",
            "heap.memory.used": _size(used), "heap.memory.free": _size(free),
            "heap.memory.total": _size(total), "heap.memory.max": _size(total),
            "heap.memory.used/total": f"{100 * used / total:.2f}%",
            "heap.memory.used/max": f"{100 * used / total:.2f}%",
            "minor.gc.count": str(minor), "minor.gc.time": "0",
            "major.gc.count": str(collected[2]["collections"]), "major.gc.time": "0",
            "load.process": f"{times.user + times.system:.2f}",
            "load.system": f"{100 * load[0] / (os.cpu_count() or 1):.2f}%",
            "load.systemAverage": f"{load[0]:.2f}",
            "thread.count": str(threading.active_count()),
            "thread.peakCount": str(threading.active_count()),
            "cluster.timeDiff": "0", "event.q.size": "0",
            **{f"executor.q.{name}.size": "0" for name in QUEUES},
            "operations.completed.count": str(self.api.served),
            "operations.running.count": "0",
            "operations.pending.invocations.percentage": "0.00%",
            "operations.pending.invocations.count": "0",
            "proxy.count": "0", "clientEndpoint.count": "0", "connection.active.count": "0",
            "client.connection.count": "0", "connection.count": "0",
        }  # fmt: skip
        return node | {f"tag.{k}": v for k, v in self.tags.items()}


def _resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _size(count: float) -> str:
    for unit in ("", "K", "M"):
        if count < 1024:
            return f"{count:.1f}{unit}" if unit else str(int(count))
        count /= 1024
    return f"{count:.1f}G"
