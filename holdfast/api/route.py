"""One path of the API, declared once: who may ask, what is asked, what is answered.

The server, the OpenAPI document and the tests of permissions all read these declarations.  A path
that is not declared does not exist, and none can be declared without its permission.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.errors import UserError

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def job_id_of(given: str, token: str) -> str:
    """Return the id that a submit asks for; without one the same 18 digits for the same submit."""
    job_id = given or str(int(hashlib.sha256(token.encode()).hexdigest(), 16))[:18]
    if not JOB_ID.fullmatch(job_id):
        raise UserError(
            f"The job id '{job_id}' is not valid. Use 1 to 64 letters, digits, '.', '_' or '-'.",
            code="job.id",
        )
    return job_id


class AccessRole(StrEnum):
    """Who a token speaks for."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Permission(StrEnum):
    """What a path lets its caller do.  PUBLIC ones show nothing of any job or of this cluster."""

    PUBLIC = "public"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


GRANTED = {
    AccessRole.VIEWER: frozenset({Permission.READ}),
    AccessRole.OPERATOR: frozenset({Permission.READ, Permission.OPERATE}),
    AccessRole.ADMIN: frozenset({Permission.READ, Permission.OPERATE, Permission.ADMIN}),
}
"""What each role may do; what is not here is refused."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: the name and the role of the token.

    `jobs`: what the ids of the jobs it is for begin with; "": it is for all.
    """

    name: str
    role: AccessRole
    jobs: str = ""

    def may(self, permission: Permission) -> bool:
        """Say whether this role has a permission."""
        return permission is Permission.PUBLIC or permission in GRANTED[self.role]

    def sees(self, job: str) -> bool:
        """Say whether this token is for a job."""
        return job.startswith(self.jobs)


NOBODY = Caller("", AccessRole.VIEWER)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that passed every check, with its parts decoded."""

    who: Caller = NOBODY
    path: Mapping[str, str] = field(default_factory=dict)
    query: Any = None
    body: Any = None
    raw_query: Mapping[str, str] = field(default_factory=dict)
    media: str = ""

    @property
    def job(self) -> str:
        """The job that the path names."""
        return self.path["jobId"]


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """An answer that is text, or JSON that is already encoded."""

    content: bytes
    media: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[ApiRequest], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Route:
    """A path.  `answer` is the type of its answer, `TextAnswer` where it is none of ours.

    `leads`: only the leader can answer; any other master hands the request on to it.  `body` is the
    type of the request's JSON, or bytes where the handler reads it.  `order`: it changes something
    and is written to the audit log.  `narrow`: a token that is for some jobs only may ask this too,
    and the handler sees to it that it learns of no other; where the path names a job that is
    checked for all.
    """

    method: str
    path: str
    permission: Permission
    handler: Handler
    answer: Any
    about: str
    query: type[msgspec.Struct] | None = None
    body: Any = None
    body_media: tuple[str, ...] = ("application/json",)
    leads: bool = True
    order: bool = False
    narrow: bool = False

    @property
    def group(self) -> str:
        """Whose path it is: SeaTunnel's (v2) or ours (api)."""
        return "api" if self.path.startswith("/api") else "v2"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in braces."""
        return tuple(re.findall(r"{(\w+)}", self.path))


PATTERNS = {
    "jobId": JOB_ID,
    "pipeline": re.compile(r"[0-9]{1,6}"),
    "saved": re.compile(r"[0-9]{1,6}"),
    "state": re.compile(r"[A-Z_]*"),
}
"""What a name in a path may look like; `NAME` where it is not listed."""


def pattern_of(parameter: str) -> re.Pattern[str]:
    """Return what a parameter of a path may look like."""
    return PATTERNS.get(parameter, NAME)
