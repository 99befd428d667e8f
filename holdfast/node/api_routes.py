"""The paths of the API, who may ask, and how an error looks."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from holdfast.errors import (
    Fenced,
    HoldfastError,
    JobFileError,
    Mistake,
    OutcomeUnknown,
    Unavailable,
    UserError,
)
from holdfast.node.api import Api, Elsewhere
from holdfast.node.api_views import Problem, Submit
from holdfast.node.links import authorized

log = logging.getLogger("holdfast")

HTTP_STATUS = {"job.unknown": 404, "job.exists": 409, "job.not_running": 409, "job.damaged": 409}


class Unauthorized(HoldfastError):
    """Who asks has not shown the token."""


def routes(app: FastAPI, api: Api) -> None:
    """Add the API to an application; every route needs the token."""

    def check(request: Request) -> None:
        if not authorized(request.headers.get("authorization", ""), api.token):
            raise Unauthorized("The token is missing or another one.", code="token")

    router = APIRouter(prefix="/api", dependencies=[Depends(check)])
    app.add_exception_handler(HoldfastError, _problem)
    app.add_exception_handler(Exception, _bug)

    @router.post("/jobs")
    async def submit(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await request.body(), type=Submit)
        except msgspec.DecodeError as error:
            raise UserError(f"The request cannot be read: {error}.", code="request") from error
        return _json(await api.submit(asked))

    @router.get("/jobs")
    async def jobs() -> Response:
        return _json(await api.jobs())

    @router.get("/cluster")
    async def cluster() -> Response:
        return _json(await api.cluster())

    def about_job(path: str, answer: Callable[[str], Awaitable[Any]], method: str) -> None:
        async def route(job_id: str) -> Response:
            return _json(await answer(job_id))

        router.add_api_route(f"/jobs/{{job_id}}{path}", route, methods=[method])

    about_job("", api.job, "GET")
    about_job("/explain", api.explain, "GET")
    about_job("/logs", api.logs, "GET")
    about_job("/cancel", api.cancel, "POST")
    about_job("/savepoint", api.savepoint, "POST")
    app.include_router(router)


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    problem = Problem(error.code, str(error))
    status = 400
    match error:
        case Unauthorized():
            status = 401
        case Elsewhere():
            status, problem.leader = 421, str(error.about.get("leader", ""))
        case Unavailable() | OutcomeUnknown() | Fenced():
            status, problem.retryable = 503, True
        case JobFileError():
            problem.mistakes = [_told(m) for m in error.mistakes]
            problem.warnings = [_told(w) for w in error.warnings]
        case UserError():
            status = HTTP_STATUS.get(error.code, 400)
    return JSONResponse(msgspec.to_builtins(problem), status)


async def _bug(request: Request, error: Exception) -> Response:
    """Answer for an error that nobody foresaw; its trace is in this master's log."""
    log.error("%s %s failed: %r", request.method, request.url.path, error, exc_info=error)
    problem = Problem("master.bug", f"The master failed: {error!r}. Its log says where.")
    return JSONResponse(msgspec.to_builtins(problem), 500)


def _told(mistake: Mistake) -> tuple[str, int, int, str]:
    place = mistake.place
    return place.file, place.line, place.column, mistake.message
