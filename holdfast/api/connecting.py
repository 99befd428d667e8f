"""Our path that has a worker open what a job names: /api/check/connect."""

import asyncio
import hashlib
import secrets

from holdfast.api.audit import Audit
from holdfast.api.problems import TOLD_MAX, told
from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.service import Api
from holdfast.api.shapes import ConnectAsked, Connected, Told
from holdfast.connect.checks import CheckReport
from holdfast.errors import JobFileError, JobFileProblem, SourceLocation
from holdfast.master.looks import Looks
from holdfast.plan.record import JobSource, encode_spec
from holdfast.wire.messages import Told as Sent


class ConnectPaths:
    """The handler."""

    def __init__(self, api: Api, audit: Audit, looks: Looks) -> None:
        self.api = api
        self.audit = audit
        self.looks = looks

    def routes(self) -> list[Route]:
        """Return the path.  It needs the right to submit: a worker uses what logins the job has."""
        return [
            Route("POST", "/api/check/connect", Permission.OPERATE, self.connect, Connected,
                  "Have a worker open what a job names; nothing is changed.", body=ConnectAsked,
                  narrow=True),
        ]  # fmt: skip

    async def connect(self, ask: ApiRequest) -> Connected:
        asked: ConnectAsked = ask.body
        leader = await self.api.leader()
        token = asked.token or secrets.token_hex(16)
        # Nobody gets another's answer, and what clients send names no thread and no Spark job.
        request = hashlib.sha256(f"{ask.who.name}/{token}".encode()).hexdigest()[:32]
        if not self.looks.knows(request):
            try:
                spec, tags = await asyncio.to_thread(self._spec, asked)
            except JobFileError as error:
                wrong = [Told(*told(m)) for m in error.mistakes[:TOLD_MAX]]
                warned = [Told(*told(m)) for m in error.warnings[:TOLD_MAX]]
                return Connected(True, False, token, mistakes=wrong, warnings=warned)
            begun = self.looks.begin(leader, request, encode_spec(spec), tags, asked.within_s)
            self.audit.looks(ask.who, spec.file, begun.worker)
        look = await self.looks.wait(request, asked.wait_s)
        if not look.answer.done():
            return Connected(False, False, token, look.worker)
        found = look.answer.result()
        ok = not found.mistakes and not found.failure
        return Connected(
            True, ok, token, look.worker, found.failure, _shown(found.mistakes),
            _shown(found.warnings),
        )  # fmt: skip

    def _spec(self, asked: ConnectAsked) -> tuple[JobSource, dict[str, str]]:
        """Read and check a job as a submit does, paths that no job may name included."""
        text = asked.spec
        if not text:
            report = CheckReport(lenient=asked.lenient, allow_unset=asked.allow_unset)
            text = encode_spec(self.api.reader.spec(asked, report))
        spec = self.api.spec_of(text)
        planned = spec.job(self.api.registry, CheckReport(lenient=spec.lenient))
        self.api.confined.check(planned)
        return spec, dict(planned.tag_filter)


def _shown(sent: tuple[Sent, ...]) -> list[Told]:
    return [
        Told(*told(JobFileProblem(SourceLocation(file, line, at), said)))
        for file, line, at, said in sent
    ]
