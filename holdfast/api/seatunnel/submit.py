"""SeaTunnel's REST v2 orders: 8-10 submit, 11-12 stop, 13 encrypt; 23 options for forms."""

import asyncio
import hashlib
import json
import secrets
import time
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import PurePath
from typing import Any

import msgspec

from holdfast.api.audit import Audit
from holdfast.api.requests import CheckText, Submit
from holdfast.api.route import JOB_ID, ApiRequest, Permission, Route
from holdfast.api.routes import connectors
from holdfast.api.seatunnel.views import (
    OptionRule,
    OptionRules,
    RequiredRule,
    RuleOption,
    StopJob,
    Stopped,
    StoppedOne,
    Submitted,
)
from holdfast.api.service import Api
from holdfast.api.views import OptionView
from holdfast.connect.checks import CheckReport
from holdfast.core.job import TERMINAL
from holdfast.errors import UserError
from holdfast.model.job import Role
from holdfast.plan.record import encode_spec

OPERATE = Permission.OPERATE
FORMATS = {"json": "job.json", "hocon": "job.conf", "sql": "job.sql"}
ENDINGS = {".json": "json", ".conf": "hocon", ".config": "hocon", ".sql": "sql"}
JOBS_MAX = 100
RESTORE_MODES = ("SAVEPOINT", "CHECKPOINT")
"""SeaTunnel distinguishes them; here a job continues from its latest saved state."""


class SubmitAsked(msgspec.Struct):
    """How a job is to be run.  `format` is that of the body."""

    jobId: str = ""
    jobName: str = ""
    isStartWithSavePoint: bool = False
    format: str = "json"
    restoreMode: str = ""
    restoreSourceJobId: str = ""


class Params(msgspec.Struct):
    """How one of several jobs is to be run."""

    jobId: str | int = ""
    jobName: str = ""
    isStartWithSavePoint: bool | str = False


class RulesAsked(msgspec.Struct):
    """Which connector: `type` is source, transform or sink."""

    type: str = ""
    plugin: str = ""


class OrdersV2:
    """The handlers."""

    def __init__(self, api: Api, audit: Audit) -> None:
        self.api = api
        self.audit = audit

    def routes(self) -> list[Route]:
        """Return the paths."""
        texts = ("application/json", "text/plain", "application/octet-stream")
        return [
            Route("POST", "/submit-job", OPERATE, self.submit, Submitted,
                  "8. Submit a job; the body is its file.", SubmitAsked, bytes, texts,
                  order=True),
            Route("POST", "/submit-job/upload", OPERATE, self.upload, Submitted,
                  "9. Submit a job as an uploaded file, config_file.", SubmitAsked, bytes,
                  ("multipart/form-data",), order=True),
            Route("POST", "/submit-jobs", OPERATE, self.submit_all, list[Submitted],
                  "10. Submit several jobs; none if one of them is wrong.",
                  body=list[dict[str, Any]], order=True),
            Route("POST", "/stop-job", OPERATE, self.stop, Stopped,
                  "11. Stop a job, with a savepoint if asked.", body=StopJob, order=True),
            Route("POST", "/stop-jobs", OPERATE, self.stop_all, list[StoppedOne],
                  "12. Stop several jobs.", body=list[StopJob], order=True),
            Route("POST", "/encrypt-config", OPERATE, self.encrypt, dict[str, Any],
                  "13. Return a job's JSON with its secrets sealed; it can be submitted so.",
                  body=dict[str, Any], leads=False),
            Route("GET", "/option-rules", Permission.READ, self.rules, OptionRules,
                  "23. The options of a connector.", RulesAsked, leads=False),
        ]  # fmt: skip

    async def submit(self, ask: ApiRequest) -> Submitted:
        return await self._submit(_text(ask.body), ask.query)

    async def upload(self, ask: ApiRequest) -> Submitted:
        name, content = _config_file(ask.media, ask.body)
        kind = ENDINGS.get(PurePath(name).suffix.lower())
        if kind is None:
            raise UserError(
                f"The file '{name}' is no job file by its ending. Good ones: {', '.join(ENDINGS)}.",
                code="request",
            )
        asked: SubmitAsked = msgspec.structs.replace(ask.query, format=kind)
        return await self._submit(_text(content), asked)

    async def submit_all(self, ask: ApiRequest) -> list[Submitted]:
        if not 1 <= len(ask.body) <= JOBS_MAX:
            raise UserError(f"Send 1 to {JOBS_MAX} jobs at once.", code="request")
        several = [_one_of_several(each) for each in ask.body]
        for text, asked in several:
            report = CheckReport(lenient=True)
            spec = await asyncio.to_thread(self.api.reader.spec, _asked(text, asked), report)
            await asyncio.to_thread(spec.job, self.api.registry, report)
        return [await self._submit(text, asked) for text, asked in several]

    async def stop(self, ask: ApiRequest) -> Stopped:
        return Stopped(await self._stop(ask, ask.body))

    async def stop_all(self, ask: ApiRequest) -> list[StoppedOne]:
        if len(ask.body) > JOBS_MAX:
            raise UserError(f"Send at most {JOBS_MAX} jobs at once.", code="request")
        names = [await self._stop(ask, each) for each in ask.body]
        return [StoppedOne(int(n) if n.isdigit() else n) for n in names]

    async def encrypt(self, ask: ApiRequest) -> dict[str, Any]:
        found: dict[str, Any] = await asyncio.to_thread(self.api.seal_options, ask.body)
        return found

    async def rules(self, ask: ApiRequest) -> OptionRules:
        asked: RulesAsked = ask.query
        if asked.type not in list(Role) or not asked.plugin:
            good = ", ".join(Role)
            raise UserError(f"Give type (one of {good}) and plugin.", code="request.query")
        found = connectors.view(self.api.registry, asked.type, asked.plugin)
        optional = [_option(o) for o in found.options if not o.required]
        needed = [
            RequiredRule("ABSOLUTELY_REQUIRED", [_option(o)], None, None)
            for o in found.options
            if o.required
        ]
        rule = OptionRule(optional, needed, [], [])
        return OptionRules("Holdfast", asked.type, found.name, rule)

    async def _submit(self, text: str, asked: SubmitAsked) -> Submitted:
        restore = asked.isStartWithSavePoint or bool(asked.restoreMode)
        source = asked.restoreSourceJobId or asked.jobId
        if asked.restoreMode.upper() not in ("", *RESTORE_MODES):
            raise UserError(
                f"'{asked.restoreMode}' is no restoreMode. Good ones: {', '.join(RESTORE_MODES)}.",
                code="request",
            )
        if asked.restoreSourceJobId and not restore:
            raise UserError(
                "restoreSourceJobId needs isStartWithSavePoint or a restoreMode.", code="request"
            )
        if restore and not source:
            raise UserError(
                "isStartWithSavePoint and restoreMode need a jobId or a restoreSourceJobId.",
                code="request",
            )
        if restore and not JOB_ID.fullmatch(source):
            raise UserError("The restoreSourceJobId is no good.", code="job.id")
        if asked.jobId and not JOB_ID.fullmatch(asked.jobId):
            raise UserError("The jobId is no good.", code="job.id")
        report = CheckReport(lenient=True)
        spec = await asyncio.to_thread(self.api.reader.spec, _asked(text, asked), report)
        job_id = asked.jobId or str(time.time_ns())[:18]
        token = await self._token(text, asked) if asked.jobId else secrets.token_hex(16)
        given = Submit(encode_spec(spec), token, job_id, restore, source=source)
        accepted = await self.api.submit(given)
        return Submitted(accepted.job_id, accepted.name)

    async def _token(self, text: str, asked: SubmitAsked) -> str:
        """Return what makes the same request, sent twice, one submit.

        Once an incarnation of this id is over and buried, the same request is a new submit.
        """
        lives = [j.incarnation for j in await self.api.history(asked.jobId)]
        if asked.isStartWithSavePoint or asked.restoreMode:
            # A restore need not wait until the last incarnation is buried.
            known = await self.api.lives(await self.api.leader(), asked.jobId)
            lives = [j.incarnation for j in known if j.status in TERMINAL]
        parts = [asked.jobId, asked.jobName, asked.format, str(asked.isStartWithSavePoint), text]
        parts += [x for x in (asked.restoreMode, asked.restoreSourceJobId) if x]
        whole = json.dumps([*parts, lives[:1]])
        return hashlib.sha256(whole.encode()).hexdigest()

    async def _stop(self, ask: ApiRequest, asked: StopJob) -> str:
        job_id = str(asked.jobId)
        if not JOB_ID.fullmatch(job_id):
            raise UserError("The jobId is no good.", code="job.id")
        if asked.isStopWithSavePoint and not asked.force:
            await self.api.savepoint(job_id)
            return job_id
        if asked.force:
            self.audit.forces(ask.who, job_id)
        await self.api.cancel(job_id, force=asked.force)
        return job_id


def _asked(text: str, asked: SubmitAsked) -> CheckText:
    kind = asked.format.lower()
    if kind not in FORMATS:
        raise UserError(
            f"'{asked.format}' is no format. Good ones: {', '.join(FORMATS)}.", code="request"
        )
    file = FORMATS[kind]
    return CheckText(text=text, format=kind, file=file, name=asked.jobName, lenient=True)


def _one_of_several(each: dict[str, Any]) -> tuple[str, SubmitAsked]:
    config = {k: v for k, v in each.items() if k != "params"}
    try:
        given = msgspec.convert(each.get("params", {}), type=Params)
    except msgspec.ValidationError as error:
        raise UserError(f"The params of a job are no good: {error}.", code="request") from error
    savepoint = str(given.isStartWithSavePoint).lower() == "true"
    return json.dumps(config), SubmitAsked(str(given.jobId), given.jobName, savepoint)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError("The job is not UTF-8.", code="request") from error


def _config_file(media: str, body: bytes) -> tuple[str, bytes]:
    """Return the name and the content of the uploaded file."""
    if not media.lower().startswith("multipart/form-data"):
        raise UserError("Send the file as multipart/form-data.", code="request.media")
    head = f"MIME-Version: 1.0\r\nContent-Type: {media}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    for part in message.iter_parts() if message.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == "config_file":
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            return part.get_filename() or "", content
    raise UserError("The form has no file named config_file.", code="request")


def _option(one: OptionView) -> RuleOption:
    values = one.choices or None
    return RuleOption(one.key, one.kind, one.default, one.doc, one.aliases, values)
