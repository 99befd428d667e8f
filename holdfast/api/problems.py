"""How an error looks to a client: one body for all paths, and no internals."""

import logging
import secrets

import msgspec

from holdfast.errors import (
    Fenced,
    HoldfastError,
    JobFileError,
    JobFileProblem,
    OutcomeUnknown,
    Unavailable,
    UserError,
)
from holdfast.plan.masking import masked_text

log = logging.getLogger("holdfast")

TOLD_MAX = 500
"""How many mistakes one answer lists."""

TEXT_MAX = 20_000

HTTP_STATUS = {
    "job.unknown": 404,
    "path.unknown": 404,
    "path.method": 405,
    "job.exists": 409,
    "job.not_running": 409,
    "job.damaged": 409,
    "job.no_savepoint": 409,
    "restore.mismatch": 409,
    "restore.places": 409,
    "restore.unplanned": 409,
    "saved.unknown": 404,
    "saved.gone": 409,
    "saved.past": 409,
    "saved.in_use": 409,
    "saved.damaged": 409,
    "saved.unfinished": 409,
    "saved.many": 409,
    "token.missing": 401,
    "token.role": 403,
    "origin": 403,
    "request.large": 413,
    "request.media": 415,
    "token.tries": 429,
}


class NotLeader(HoldfastError):
    """Another master leads; ask that one."""


class Problem(msgspec.Struct):
    """Why a request was not done.  `retryable`: the same request may work later."""

    code: str
    message: str
    retryable: bool = False
    leader: str = ""
    mistakes: list[tuple[str, int, int, str]] = msgspec.field(default_factory=list)
    warnings: list[tuple[str, int, int, str]] = msgspec.field(default_factory=list)
    status: str = "fail"


def problem_of(error: BaseException, what: str) -> tuple[int, Problem]:
    """Return the status and the body for an error.  An unforeseen one only gets a number.

    Its text may hold anything; it is in this master's log, under that number.
    """
    if not isinstance(error, HoldfastError):
        number = secrets.token_hex(6)
        log.error("%s failed (%s): %r", what, number, error, exc_info=error)
        said = f"The master failed; its log says why, under {number}."
        return 500, Problem("master.bug", said)
    problem = Problem(error.code, shown(str(error)))
    status = 400
    match error:
        case NotLeader():
            status, problem.leader = 421, str(error.about.get("leader", ""))
        case Unavailable() | OutcomeUnknown() | Fenced():
            status, problem.retryable = 503, True
        case JobFileError():
            problem.mistakes = [told(m) for m in error.mistakes[:TOLD_MAX]]
            problem.warnings = [told(w) for w in error.warnings[:TOLD_MAX]]
        case UserError():
            status = HTTP_STATUS.get(error.code, 400)
    return status, problem


def shown(text: str) -> str:
    """Return a text without secrets, and not without end; it is never cut inside a word."""
    if len(text) > TEXT_MAX:
        text = text[:TEXT_MAX].rpartition(" ")[0] + " ..."
    return masked_text(text)


def told(mistake: JobFileProblem) -> tuple[str, int, int, str]:
    """Return a mistake as answers show it: file, line, column, sentence."""
    place = mistake.place
    return place.file, place.line, place.column, shown(mistake.message)
