"""Before a job is submitted: connectors with their options, and checks of its text."""

import asyncio
import hashlib
import secrets
from collections.abc import Iterator
from typing import Any

from holdfast.api.audit import Audit
from holdfast.api.problems import TOLD_MAX, told
from holdfast.api.requests import CheckText, ConnectAsked
from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.service import Api
from holdfast.api.views import (
    CheckResult,
    Connected,
    ConnectorRow,
    ConnectorView,
    OptionView,
    ProblemView,
)
from holdfast.connect.checks import CheckReport
from holdfast.connect.options import OptionInfo, describe
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.errors import JobFileError, JobFileProblem, SourceLocation, UserError
from holdfast.master.looks import LookRequests
from holdfast.model.job import Role
from holdfast.model.secret import Secret
from holdfast.plan.record import JobSource, encode_spec
from holdfast.wire.messages import Told as Sent

READ = Permission.READ
DEPTH_MAX = 5


def rows(registry: Registry) -> list[ConnectorRow]:
    """Return all connectors, sources first."""
    return [
        ConnectorRow(kind.name, role.value, _summary(kind), kind.refused, _guarantee(kind))
        for role in Role
        for name in registry.names(role)
        if (kind := registry.find(role, name))
    ]


def view(registry: Registry, role: str, name: str) -> ConnectorView:
    """Return a connector with its options."""
    kind = registry.find(Role(role), name) if role in list(Role) else None
    if kind is None:
        raise UserError(f"There is no {role} '{name}'.", code="path.unknown")
    return ConnectorView(
        kind.name, role, _summary(kind), kind.refused, _guarantee(kind), kind.needs_python,
        kind.notes, list(_options(kind.options_class, DEPTH_MAX))
    )  # fmt: skip


def _options(cls: type[Any], depth: int) -> Iterator[OptionView]:
    for info in describe(cls):
        inner = list(_options(info.inner, depth - 1)) if info.inner and depth else []
        yield OptionView(
            info.key, info.kind, info.required, _plain(info.default), info.doc, list(info.aliases),
            "secret" in info.kind, choices(info), inner
        )  # fmt: skip


def choices(info: OptionInfo) -> list[str]:
    """Return the only good values of an option, where its type names them."""
    return info.kind.removeprefix("list of ").split(" | ") if " | " in info.kind else []


def _summary(kind: type[Plugin[Any]]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0] if kind.__doc__ else ""


def _guarantee(kind: type[Plugin[Any]]) -> str:
    return kind.guarantee.value if issubclass(kind, Sink) else ""


def _plain(value: object) -> object:
    """Return a default as JSON can hold it."""
    match value:
        case Secret():
            return None
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(v) for v in value]
    return str(value)


class ConnectorPaths:
    """The handlers."""

    def __init__(self, api: Api, audit: Audit, looks: LookRequests) -> None:
        self.api = api
        self.audit = audit
        self.looks = looks

    def routes(self) -> list[Route]:
        """Return the paths.  To open what a job names needs the right to submit: it uses logins."""
        return [
            Route(
                "GET",
                "/api/connectors",
                READ,
                self.connectors,
                list[ConnectorRow],
                "All connectors.",
                leads=False,
                narrow=True,
            ),
            Route(
                "GET",
                "/api/connectors/{role}/{name}",
                READ,
                self.connector,
                ConnectorView,
                "A connector's options, for a form.",
                leads=False,
                narrow=True,
            ),
            Route(
                "POST",
                "/api/check",
                READ,
                self.check,
                CheckResult,
                "Check the text of a job: every mistake with its place.",
                body=CheckText,
                leads=False,
                narrow=True,
            ),
            Route(
                "POST",
                "/api/check/connect",
                Permission.OPERATE,
                self.connect,
                Connected,
                "Have a worker open what a job names; nothing is changed.",
                body=ConnectAsked,
                narrow=True,
            ),
        ]

    async def connectors(self, ask: ApiRequest) -> list[ConnectorRow]:
        return rows(self.api.registry)

    async def connector(self, ask: ApiRequest) -> ConnectorView:
        return view(self.api.registry, ask.path["role"], ask.path["name"])

    async def check(self, ask: ApiRequest) -> CheckResult:
        return await asyncio.to_thread(self.api.reader.check, ask.body)

    async def connect(self, ask: ApiRequest) -> Connected:
        asked: ConnectAsked = ask.body
        leader = await self.api.leader()
        token = asked.token or secrets.token_hex(16)
        # A client gets its own answer only, and what it sends names no thread and no Spark job.
        request = hashlib.sha256(f"{ask.who.name}/{token}".encode()).hexdigest()[:32]
        if not self.looks.knows(request):
            try:
                spec, tags = await asyncio.to_thread(self._spec, asked)
            except JobFileError as error:
                wrong = [ProblemView(*told(m)) for m in error.mistakes[:TOLD_MAX]]
                warned = [ProblemView(*told(m)) for m in error.warnings[:TOLD_MAX]]
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
            _shown(found.warnings)
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


def _shown(sent: tuple[Sent, ...]) -> list[ProblemView]:
    return [
        ProblemView(*told(JobFileProblem(SourceLocation(file, line, at), said)))
        for file, line, at, said in sent
    ]
