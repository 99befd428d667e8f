"""Our own paths about the cluster: overview, workers, tokens, the audit log."""

from collections import Counter
from importlib.metadata import version

import msgspec

from holdfast.api.access import Access, NewToken, TokenView
from holdfast.api.audit import Audit
from holdfast.api.requests import NewTokenAsked
from holdfast.api.route import GRANTED, AccessRole, ApiRequest, Permission, Route
from holdfast.api.service import Api
from holdfast.api.views import (
    AuditLines,
    ChangeView,
    ClusterView,
    Done,
    Healthy,
    Me,
    Overview,
    WorkerView,
)
from holdfast.core.job import JobStatus
from holdfast.errors import UserError
from holdfast.master.health import Health

READ, OPERATE, ADMIN = Permission.READ, Permission.OPERATE, Permission.ADMIN
WAIT_S_MAX = 25.0
WORST_MAX = 20


class ChangeAsked(msgspec.Struct):
    """Wait until the number of changes is another than `since`, or for `wait_s` seconds."""

    since: int = -1
    wait_s: float = 20.0


class ClusterPaths:
    """The handlers."""

    def __init__(self, api: Api, access: Access, audit: Audit) -> None:
        self.api = api
        self.access = access
        self.audit = audit

    def routes(self) -> list[Route]:
        """Return the paths."""
        drain = "/api/workers/{worker}/drain"
        return [
            Route("GET", "/healthz", Permission.PUBLIC, self.healthz, Healthy,
                  "Whether this process answers; nothing else.", leads=False),
            Route("GET", "/api/me", READ, self.me, Me, "Who asks.", leads=False,
                  narrow=True),
            Route("GET", "/api/overview", READ, self.overview, Overview,
                  "The cluster at a glance: leader, jobs by health, slots."),
            Route("GET", "/api/cluster", READ, lambda ask: self.api.cluster(), ClusterView,
                  "Who leads and who works."),
            Route("GET", "/api/workers", READ, self.workers, list[WorkerView],
                  "The workers, their slots and their tasks."),
            Route("GET", "/api/changes", READ, self.changes, ChangeView,
                  "Wait for a change of anything that is shown.", ChangeAsked, narrow=True),
            Route("POST", drain, OPERATE, self.drain, Done,
                  "Drain a worker: it gets no task, and its tasks move.", order=True),
            Route("DELETE", drain, OPERATE, self.undrain, Done,
                  "Let a drained worker get tasks again.", order=True),
            Route("GET", "/api/tokens", ADMIN, lambda ask: self.access.tokens(), list[TokenView],
                  "The tokens that exist, without their text.", leads=False),
            Route("POST", "/api/tokens", ADMIN, self.give, NewToken,
                  "Create a token; its text is shown this once.", body=NewTokenAsked, leads=False,
                  order=True),
            Route("DELETE", "/api/tokens/{id}", ADMIN, self.take_back, Done,
                  "Revoke a token.", leads=False, order=True),
            Route("GET", "/api/audit", ADMIN, self.audited, AuditLines,
                  "The last lines of this master's audit log.", leads=False),
        ]  # fmt: skip

    async def healthz(self, ask: ApiRequest) -> Healthy:
        return Healthy()

    async def me(self, ask: ApiRequest) -> Me:
        granted = sorted(p.value for p in GRANTED[ask.who.role])
        return Me(
            ask.who.name, ask.who.role.value, granted, self.api.master.name,
            self.api.leading() is not None, list(self.api.masters),
        )  # fmt: skip

    async def workers(self, ask: ApiRequest) -> list[WorkerView]:
        return (await self.api.cluster()).workers

    async def overview(self, ask: ApiRequest) -> Overview:
        jobs = await self.api.jobs()
        leader, mark = self.api.leading(), await self.api.mark()
        crew = (await self.api.cluster()).workers if leader else []
        living = [j for j in jobs.jobs if not j.ended_s and j.status != "DAMAGED"]
        health = {h.value: 0 for h in Health} | Counter(j.health for j in living if j.health)
        late = [j for j in living if j.health in (Health.LATE, Health.STALLED)]
        late.sort(key=lambda j: (j.health != Health.STALLED, -(j.checkpoint_age_s or 0.0)))
        return Overview(
            version=version("holdfast"),
            master=self.api.master.name,
            leader=mark.name if mark else "",
            url=mark.url if mark else "",
            term=leader.desk.number if leader else 0,
            live=leader is not None,
            change=self.api.board.version,
            by_status=dict(Counter(j.status for j in jobs.jobs)),
            by_health=dict(health),
            running=sum(j.status != JobStatus.PENDING for j in living),
            waiting=sum(j.status == JobStatus.PENDING for j in living),
            workers=len(crew),
            slots=sum(w.slots for w in crew),
            slots_used=sum(w.used for w in crew),
            read_per_s=round(sum(j.read_per_s for j in living), 3),
            written_per_s=round(sum(j.written_per_s for j in living), 3),
            worst=late[:WORST_MAX],
            set_aside=dict(leader.quarantined) if leader else {},
        )

    async def changes(self, ask: ApiRequest) -> ChangeView:
        asked: ChangeAsked = ask.query
        board = self.api.board
        await board.changed(asked.since, min(max(0.0, asked.wait_s), WAIT_S_MAX))
        return ChangeView(board.version, board.term, self.api.leading() is not None)

    async def drain(self, ask: ApiRequest) -> Done:
        return await self._wish(ask.path["worker"], drained=True)

    async def undrain(self, ask: ApiRequest) -> Done:
        return await self._wish(ask.path["worker"], drained=False)

    async def _wish(self, worker: str, *, drained: bool) -> Done:
        leader = await self.api.leader()
        await self.api.fenced(leader, leader.drain(worker, drained=drained))
        return Done()

    async def give(self, ask: ApiRequest) -> NewToken:
        asked: NewTokenAsked = ask.body
        if asked.role not in list(AccessRole) or asked.days < 0:
            good = ", ".join(AccessRole)
            raise UserError(
                f"A token's role is one of {good}, and its days are 0 or more.", code="request"
            )
        return await self.access.give(asked.name, AccessRole(asked.role), asked.days, asked.jobs)

    async def take_back(self, ask: ApiRequest) -> Done:
        await self.access.take_back(ask.path["id"])
        return Done()

    async def audited(self, ask: ApiRequest) -> AuditLines:
        return AuditLines(self.api.master.name, list(self.audit.latest))
