"""Which stage of a changed job file continues which stage of the old one.

A source's position belongs to that source, wherever it is in the file.  Stages are matched by
what they are: by the user's word, by `uid`, by plug-in and options, then by the names they are
wired with; by their place only where nothing else has changed.  What cannot be decided is refused,
never guessed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.model.identity import Facts, StageIdentity
from holdfast.model.job import Role

NONE = "none"
"""What `--map OLD=none` says: this one ends here."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Which stage continues which.  With a mistake in it, nothing may be restored."""

    kept: tuple[tuple[StageIdentity, StageIdentity], ...] = ()
    new: tuple[StageIdentity, ...] = ()
    dropped: tuple[StageIdentity, ...] = ()
    mistakes: tuple[str, ...] = ()

    @property
    def moved(self) -> dict[str, str]:
        """Old stage ids and the new ones of the stages that continue."""
        return {old.stage: new.stage for old, new in self.kept}

    @property
    def said(self) -> tuple[str, ...]:
        """What people must know, a sentence for each stage."""
        kept = (_continues(old, new) for old, new in self.kept)
        new = (f"{one.shown} is new: {_begins(one)}." for one in self.new)
        gone = (f"{one.shown} is dropped: {_ends(one)}." for one in self.dropped)
        return (*kept, *new, *gone)


def match(
    old: Sequence[StageIdentity],
    new: Sequence[StageIdentity],
    maps: Mapping[str, str],
    *,
    allow_dropped: bool = False,
) -> Matching:
    """Match the stages of a saved state with those of a job file; find every mistake.

    `maps` is the user's word: old ids or uids and new ones, or `none`.
    """
    work = _Work(list(old), list(new))
    given_up = work.by_word(maps)
    work.by_uid()
    work.by_what()
    for before, after in work.kept:
        work.mistakes += _unfit(before, after)
    for one in work.old:
        if not allow_dropped and not work.unsure(one):
            work.mistakes.append(_lost(one, work.new))
    kept = sorted(work.kept, key=lambda pair: new.index(pair[1]))
    gone = [one for one in old if one in given_up or one in work.old]
    return Matching(tuple(kept), tuple(work.new), tuple(gone), tuple(work.mistakes))


class _Work:
    """What is matched so far, and what is left to match."""

    def __init__(self, old: list[StageIdentity], new: list[StageIdentity]) -> None:
        self.same = [_place(one) for one in old] == [_place(one) for one in new]
        self.old = old
        self.new = new
        self.kept: list[tuple[StageIdentity, StageIdentity]] = []
        self.mistakes: list[str] = []
        self._unsure: list[StageIdentity] = []

    def by_word(self, maps: Mapping[str, str]) -> list[StageIdentity]:
        """Do what the user says; return the old stages that shall end."""
        given_up: list[StageIdentity] = []
        olds, news = tuple(self.old), tuple(self.new)
        for was, becomes in maps.items():
            before = self._named(was, olds, self.old, "saved state")
            after = None
            if becomes != NONE:
                after = self._named(becomes, news, self.new, "job file")
            if before and becomes == NONE:
                self.old.remove(before)
                given_up.append(before)
            elif before and after and self._agree(before, after):
                self._keep(before, after)
        return given_up

    def by_uid(self) -> None:
        """Keep stages that have the same uid."""
        for before in [one for one in self.old if one.uid]:
            after = next(
                (n for n in self.new if (n.uid, n.role) == (before.uid, before.role)), None
            )
            if after and self._agree(before, after):
                self._keep(before, after)

    def by_what(self) -> None:
        """Keep stages that say the same: the only ones that do, or the only ones so wired."""
        for key in dict.fromkeys(_what(one) for one in self.old):
            self._by_names(key)
            olds, news = self._left(key)
            if self.same and len(olds) == len(news):
                for before, after in zip(olds, news, strict=True):
                    self._keep(before, after)
            elif len(olds) == 1 == len(news):
                if _may_be(olds[0], news[0]):
                    self._keep(olds[0], news[0])
            elif any(_may_be(before, after) for before in olds for after in news):
                self.mistakes.append(_ambiguous(olds, news))
                self._unsure += olds

    def unsure(self, one: StageIdentity) -> bool:
        """Say whether a mistake already names this old stage."""
        return one in self._unsure

    def _by_names(self, key: object) -> None:
        olds, news = self._left(key)
        for before in olds:
            after = [n for n in news if n.names and n.names == before.names and _may_be(before, n)]
            if len(after) == 1 and sum(o.names == before.names for o in olds) == 1:
                self._keep(before, after[0])

    def _left(self, key: object) -> tuple[list[StageIdentity], list[StageIdentity]]:
        return ([o for o in self.old if _what(o) == key], [n for n in self.new if _what(n) == key])

    def _named(
        self, name: str, stages: Sequence[StageIdentity], left: Sequence[StageIdentity], where: str
    ) -> StageIdentity | None:
        """Return the stage of this id or uid that is not matched yet."""
        found = [one for one in stages if name in (one.stage, one.uid)]
        known = ", ".join(one.stage for one in stages)
        if not found:
            self.mistakes.append(f"--map: the {where} has no stage {name}. It has: {known}.")
        elif len(found) > 1:
            self.mistakes.append(f"--map: {name} means two stages of the {where}. Give its id.")
        elif found[0] not in left:
            self.mistakes.append(f"--map: {name} of the {where} is named twice. Name each once.")
        else:
            return found[0]
        return None

    def _agree(self, before: StageIdentity, after: StageIdentity) -> bool:
        """Say whether two stages can be one: only the same plug-in knows what a position means."""
        if (before.role, before.plugin) == (after.role, after.plugin):
            return True
        self.mistakes.append(
            f"{before.shown} cannot continue as {after.shown}: one is a"
            f" {before.role} {before.plugin}, the other a {after.role} {after.plugin}."
        )
        self._unsure.append(before)
        return False

    def _keep(self, before: StageIdentity, after: StageIdentity) -> None:
        self.kept.append((before, after))
        self.old.remove(before)
        self.new.remove(after)


def _what(one: StageIdentity) -> tuple[Role, str, Facts]:
    return one.role, one.plugin, one.what


def _place(one: StageIdentity) -> tuple[object, ...]:
    return one.stage, one.uid, one.what, one.names


def _may_be(before: StageIdentity, after: StageIdentity) -> bool:
    """Say whether two stages that say the same may be one: different uids say that they are not."""
    return not (before.uid and after.uid) or before.uid == after.uid


def _unfit(before: StageIdentity, after: StageIdentity) -> list[str]:
    """Say why a position of the one would be taken for another place by the other."""
    was, now = dict(before.basis), dict(after.basis)
    changed = [
        f"{key} was {was.get(key, 'not set')} and is {now.get(key, 'not set')}"
        for key in sorted(was.keys() | now.keys())
        if was.get(key) != now.get(key)
    ]
    if not changed:
        return []
    return [
        f"{before.shown} cannot continue as {after.shown}: {'; '.join(changed)}."
        " Where it had read to means something else then, and rows would be lost or come"
        " twice. Change that back; or"
        f" give up where it was, and let it start over: --map '{before.stage}={NONE}'."
    ]


def _lost(one: StageIdentity, new: Sequence[StageIdentity]) -> str:
    like = [n for n in new if (n.role, n.plugin) == (one.role, one.plugin)]
    hints = "".join(f" If it continues as {n.shown}: --map '{one.stage}={n.stage}'." for n in like)
    return (
        f"{one.shown} of the saved state is not in the job file.{hints} If it shall end here:"
        f" --map '{one.stage}={NONE}', or --allow-dropped for all such."
    )


def _ambiguous(olds: Sequence[StageIdentity], news: Sequence[StageIdentity]) -> str:
    return (
        f"It is not clear which of {_list(olds)} of the saved state continues as which of"
        f" {_list(news)} of the job file: they say the same. Say it with --map old=new"
        f" ({NONE}: it ends), and give each a uid for the next time."
    )


def _list(stages: Iterable[StageIdentity]) -> str:
    return ", ".join(one.shown for one in stages)


def _continues(old: StageIdentity, new: StageIdentity) -> str:
    where = "." if old.stage == new.stage else f" as {old.shown} stopped."
    return f"{new.shown} continues{where}"


def _begins(one: StageIdentity) -> str:
    if one.role is Role.SOURCE:
        return "it is read from its beginning"
    return "it gets rows from now on, none of those read before"


def _ends(one: StageIdentity) -> str:
    if one.role is Role.SOURCE:
        return "where it had read to is forgotten"
    return "it gets no more rows, and what it has stays"
