"""Every error anyone can meet.

HoldfastError            carries .code, .about (ids) and a message
├── UserError            the job or an option is wrong; never retried; exit 1
│   ├── UserErrors       several of them, of one stage
│   └── JobFileError     all mistakes found in a job file, each with its place
├── UsageError           the command line is wrong; exit 2
├── Unavailable          the same call may work later; retried with a bound
├── Fenced               someone newer owns this; stop quietly; never shown to users
├── OutcomeUnknown       it may have happened; read back before deciding; never blindly retried
└── Cancelled            the user asked to stop

The class says what the caller does next.  A broken promise inside Holdfast is an AssertionError,
not one of these.  A message says what failed, on what, why, and what to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class HoldfastError(Exception):
    """Any failure that Holdfast itself can explain."""

    def __init__(self, message: str, *, code: str = "", **about: object) -> None:
        super().__init__(message)
        self.code = code
        self.about = about


class UserError(HoldfastError):
    """The job or an option is wrong: trying again changes nothing."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, a sentence for each thing."""
        return (str(self),)


class UserErrors(UserError):
    """Several things are wrong in one place, a sentence for each."""

    def __init__(self, sentences: Sequence[str], *, code: str = "") -> None:
        self._sentences = tuple(dict.fromkeys(sentences))
        super().__init__(" ".join(self._sentences), code=code)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, a sentence for each thing."""
        return self._sentences


class UsageError(HoldfastError):
    """The command line is wrong."""


class Unavailable(HoldfastError):
    """The same call may work later."""


class Fenced(HoldfastError):
    """Someone newer owns this: stop quietly."""


class OutcomeUnknown(HoldfastError):
    """It may have happened: read back before deciding."""


class Cancelled(HoldfastError):
    """The user asked to stop."""


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A place in a job file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class JobFileProblem:
    """One thing wrong in a job file: where, and a sentence that says what, why and what to do.

    The message never holds the value of a secret option.
    """

    place: SourceLocation
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class JobFileError(UserError):
    """All mistakes found in a job file, in the order they stand in it, and what else was seen."""

    def __init__(
        self, mistakes: Sequence[JobFileProblem], warnings: Sequence[JobFileProblem] = ()
    ) -> None:
        self.mistakes = tuple(sorted(set(mistakes)))
        self.warnings = tuple(warnings)
        super().__init__("\n".join(str(m) for m in self.mistakes), code="job.invalid")
