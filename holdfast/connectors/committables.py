"""What a committable may say of places: nothing that the job's own options do not say.

Committables come from workers, over the wire and out of checkpoints, and the leader moves and
removes what they name.  So every sink reads them through `CommittableCheck` before it touches
anything: places are compared with its options, staging folders with the names that it gives, and
files must lie below them.  Anything else is refused, also what is no committable at all.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from holdfast.connect.placeholders import stands_for
from holdfast.connect.sink import CommitEvent, CommitId, Committable, Sink
from holdfast.connectors.files.sweep import safe
from holdfast.errors import UserError

T = TypeVar("T")

LONG_MAX = 2**63 - 1
Whole = Annotated[int, msgspec.Meta(ge=0, le=LONG_MAX)]
"""A size or a count, as the formats of tables can hold it."""

HIDDEN = ("_holdfast", "_delta_log")
OURS = ".holdfast"
"""Names that begin so are ours, as are those above; no file of a table is put there."""

PART_MAX, PATH_MAX = 255, 4096
SHOWN_MAX = 200
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What reading raises where plain data is not what it should be."""

_USER = re.compile(r"(.+)\.\d+\.[^.]+", re.DOTALL)
_TRY = re.compile(r"(.+)-a\d+-s\d+")
_TABLE = re.compile(r"(.+)-t\d+")
_ELSEWHERE = re.compile(r"[A-Za-z][\w+.-]*:[/\\]|[A-Za-z]:$")


class StagedFile(Protocol):
    """A file with its two places below the table's folder."""

    @property
    def staged(self) -> str:
        """Where it was staged."""

    @property
    def final(self) -> str:
        """Where the table has it."""


def life_of_user(user: str) -> str | None:
    """Return the life that a leader commits for; None where no leader has made this name."""
    found = _USER.fullmatch(user)
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class CommittableCheck:
    """Reads one committable for one sink.  `life`: who must have staged it; None for anybody."""

    sink: Sink[Any]
    committable: Committable
    life: str | None = None

    def refusal(self, what: str) -> UserError:
        """Return the error for a committable that says this."""
        context = self.sink.context
        return UserError(
            f"{self.sink.name} ({context.stage}) of job {context.job_id} refuses what was staged"
            f" for table {shown(self.committable.table)}: {what}. Nothing was moved or removed."
            " Workers stage only where the job file says: look at the one that ran the task, and"
            " whether all workers and masters run this version in the same folder.",
            code="sink.committable_refused",
        )

    def require(self, holds: bool, what: str) -> None:
        """Refuse a committable of which something does not hold."""
        if not holds:
            raise self.refusal(what)

    @property
    def is_former(self) -> bool:
        """Whether a former incarnation staged it, whose unfinished commits this one makes.

        The options may have changed since.  That incarnation's leader compared it with the options
        of its own job file when the worker answered, and has kept it in a checkpoint.
        """
        own = self.sink.context.life
        return bool(own) and self.life is not None and self.life != own

    def require_option(self, holds: bool, what: str) -> None:
        """Refuse what the options do not give, unless it is a former incarnation's."""
        self.require(holds or self.is_former, what)

    def content(self, kind: type[T], version: int) -> T:
        """Return the content, which must be of this version and of these types."""
        if self.committable.version != version:
            raise UserError(
                f"{self.sink.name} of job {self.sink.context.job_id} cannot commit what version"
                f" {shown(self.committable.version)} of it has staged for"
                f" {shown(self.committable.table)}; this is version {version}.",
                code="sink.committable_version",
            )
        with self.sound("content"):
            made = msgspec.convert(self.committable.content, kind)
            rows, size = self.committable.rows, self.committable.bytes
            if not (-1 <= rows <= LONG_MAX and 0 <= size <= LONG_MAX):
                raise ValueError(f"{rows} rows, {size} bytes")
        return made

    @contextmanager
    def sound(self, what: str) -> Iterator[None]:
        """Refuse what cannot be read: the same error, however it shows."""
        try:
            yield
        except MALFORMED as error:
            said = shown(str(error) or type(error).__name__)
            raise self.refusal(f"its {what} cannot be read ({said})") from error

    def place(self, said: str, template: str) -> None:
        """Refuse a place that the options do not give."""
        self.require("\0" not in said and len(said) <= PATH_MAX, f"{shown(said)} is no place")
        known = bool(template) and stands_for(template, said, _is_reserved)
        self.require_option(known, f"{shown(said)} is not where it writes ({shown(template)})")

    def of_life(self, life: str) -> None:
        """Refuse an order of another life than the one that commits."""
        self.require(self.life in (None, life), f"it is of {shown(life)}, and not of {self.life}")

    def mode(self, said: str, given: str | None) -> None:
        """Refuse a save mode that the options do not ask for."""
        self.require_option(
            given is not None and said == given,
            f"the save mode {shown(said)} is not what the job file asks for ({given or 'none'})",
        )

    def attempt(self, name: str, *, spelled: bool = True) -> None:
        """Refuse the name of a try that is not of this life; `spelled`: as folders have it."""
        found = _TRY.fullmatch(name)
        life = self.life if self.life is None or not spelled else safe(self.life)
        ours = found is not None and (life is None or found[1].startswith(f"{life}-"))
        plain = not spelled or (safe(name) == name and not name.startswith("."))
        whose = f" of {self.life}" if self.life else ""
        self.require(ours and plain, f"{shown(name)} is not the name of a try{whose}")

    def folder(self, folder: str, hidden: str) -> None:
        """Refuse a staging folder that is not one of a try, in `hidden`."""
        above, _, name = folder.partition("/")
        found = _TABLE.fullmatch(name)
        if above != hidden or found is None or len(name.encode(errors="replace")) > PART_MAX:
            raise self.refusal(f"{shown(folder)} is no staging folder in {hidden}")
        self.attempt(found[1])

    def files(self, pairs: Iterable[tuple[str, str]], folder: str) -> None:
        """Refuse files that were not staged in a folder, or would leave the table's."""
        start = f"{folder}/"
        for staged, final in pairs:
            below = staged.removeprefix(start)
            if below == staged or (why := _wrong(below)):
                reason = f" ({why})" if below != staged else ""
                raise self.refusal(f"the file {shown(staged)} is not in {folder}{reason}")
            if why := _wrong(final) or _hidden(final):
                raise self.refusal(f"the file name {shown(final)} {why}")

    def staged_in(
        self, place: tuple[str, str], folder: str, hidden: str, pairs: Iterable[tuple[str, str]]
    ) -> None:
        """Refuse files not staged for a place (said, template), in a folder of a try."""
        self.place(*place)
        self.folder(folder, hidden)
        self.files(pairs, folder)

    def staged_files(self, files: Iterable[StagedFile], folder: str) -> None:
        """Refuse files as `files` does."""
        self.files(((f.staged, f.final) for f in files), folder)


class Admitting:
    """What sinks share that read all they are given with `_staged` and `_order`, which check it."""

    def _staged(self, committable: Committable, life: str | None = None) -> object:
        raise NotImplementedError

    def _order(self, committable: Committable, life: str | None) -> object:
        raise NotImplementedError

    def _read(
        self, identifier: CommitId, committables: Sequence[Committable]
    ) -> tuple[list[Any], list[Any]]:
        """Return what was staged for a commit, and its save modes; all of it is looked at."""
        life = life_of_user(identifier.user)
        staged = [self._staged(c, life) for c in committables if not c.opening]
        return staged, [self._order(c, life) for c in committables if c.opening]

    def _heard(self, commit: CommitEvent) -> list[tuple[str, Any]]:
        """Return the tables of a commit that was made, each with what was staged for it."""
        life = life_of_user(commit.identifier.user)
        return [(c.table, self._staged(c, life)) for c in commit.committables]

    def admit(self, committables: Sequence[Committable], life: str | None = None) -> None:
        """Raise UserError for places, names and statements that are not this sink's."""
        for one in committables:
            self._order(one, life) if one.opening else self._staged(one, life)


def same_texts(templates: Mapping[str, str], said: Mapping[str, Any]) -> bool:
    """Say whether settings are those of the options, in which placeholders stand for one name."""
    return templates.keys() == said.keys() and all(
        isinstance(said[key], str) and stands_for(text, said[key])
        for key, text in templates.items()
    )


def shown(said: object) -> str:
    """Return what a worker has said, as a message can show it."""
    text = ascii(said)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _wrong(path: str) -> str:
    """Return why a path is not simply below a folder; nothing if it is."""
    parts = path.split("/")
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError:
        return "has half a character in it"
    if "\0" in path:
        return "has a NUL character in it"
    if path.startswith("/") or _ELSEWHERE.match(path):
        return "is not a path below the table's folder"
    if {"", ".", ".."}.intersection(parts):
        return "has a part that is empty or leads elsewhere"
    return "is too long" if longest > PART_MAX or len(path) > PATH_MAX else ""


def _hidden(path: str) -> str:
    found = next((part for part in path.split("/") if _is_reserved(part)), "")
    return f"is inside {found}, where no rows belong" if found else ""


def _is_reserved(part: str) -> bool:
    return part in HIDDEN or part == OURS or part.startswith(f"{OURS}-")
