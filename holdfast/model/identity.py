"""What a source or sink is known by when its job is restored with a changed job file."""

from dataclasses import dataclass

from holdfast.model.job import Role

SHOWN_MAX = 200
"""How much of one option a message shows; what is left out is marked."""

Facts = tuple[tuple[str, str], ...]
"""Options and what they say, sorted."""


@dataclass(frozen=True, slots=True)
class StageIdentity:
    """One source or sink of one job file.

    `what` are the options that tell it from others, `names` the datasets it offers or reads, and
    `basis` is what positions of a source depend on.
    """

    stage: str
    role: Role
    plugin: str
    uid: str = ""
    what: Facts = ()
    names: tuple[str, ...] = ()
    basis: Facts = ()

    @property
    def shown(self) -> str:
        """This stage for messages: its id, and what it is known by."""
        facts = ([("uid", self.uid)] if self.uid else []) + list(self.what)
        said = ", ".join(f"{key} = {_short(text)}" for key, text in facts)
        return f"{self.stage} ({said})" if said else self.stage


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_MAX else f"{line[:SHOWN_MAX]}..."
