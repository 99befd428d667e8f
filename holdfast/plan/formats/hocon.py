"""HOCON job files, as SeaTunnel reads them.  `hocon_parse` first, then `hocon_merge`."""

from collections.abc import Callable
from pathlib import PurePath

from holdfast.errors import JobFileError, SourceLocation
from holdfast.model.tree import Block, Node
from holdfast.plan.formats.hocon_merge import Draft, Given, Resolver, Warn, build, build_job
from holdfast.plan.formats.hocon_parse import Field, Include, Parser
from holdfast.plan.syntax import ROLES, At, LineIndex, Unreadable, quote

Read = Callable[[str], str]
"""Return the text of a file, or raise OSError (FileNotFoundError if there is none)."""

CHAIN_MAX = 16
INCLUDES_MAX = 1000
_ENDINGS = (".conf", ".json", ".hocon", ".config", ".template", ".properties")


def parse_hocon(text: str, file: str, read: Read | None, given: Given, warn: Warn) -> Block:
    """Return the tree of a job file.  Raises Unreadable at the first mistake.

    A top-level key that a `${}` used has done its work and is left out of the tree.
    """
    includes = _Includes((file,), read, [])
    fields = Parser(text, LineIndex(file, text).at, includes).root()
    resolver = Resolver(build_job(fields, warn), given)
    job = resolver.block(resolver.job)
    kept = tuple(e for e in job.entries if e.key in ("env", *ROLES) or e.key not in resolver.read)
    return Block(kept, job.place)


def parse_value(text: str, at: At) -> Node:
    """Return the tree of one HOCON value; every `${}` in it stays as text."""
    value = build(Parser(text, at).whole_value())
    resolver = Resolver(Draft(value.place), lambda name, place: None)
    node = resolver.value(value, level=2)
    if node is None:
        raise Unreadable(value.place, "This value is empty. Give one.")
    return node


class _Includes:
    """Answers the includes of one file.

    `chain` holds the file that includes it and so on, then itself; `included` all files of the job.
    """

    def __init__(self, chain: tuple[str, ...], read: Read | None, included: list[str]) -> None:
        self.chain, self.read, self.included = chain, read, included

    def __call__(self, include: Include) -> tuple[Field, ...]:
        if include.kind in ("url", "classpath"):
            raise Unreadable(
                include.place,
                f"include {include.kind}(...) is not supported."
                " Put the file next to this one and include it by its name.",
            )
        if self.read is None:
            raise Unreadable(
                include.place,
                f"{quote(include.name)} cannot be included: this job did not come from a file."
                " Write its content here instead.",
            )
        for path in _candidates(self.chain[-1], include):
            text = self._text(path, self.read, include.place)
            if text is not None:
                return self._fields(path, text, include)
        if include.required:
            raise Unreadable(
                include.place,
                f"The included file {quote(_candidates(self.chain[-1], include)[0])} does not"
                " exist. Create it, or correct its name.",
            )
        return ()

    def _text(self, path: str, read: Read, place: SourceLocation) -> str | None:
        try:
            return read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unreadable(place, f"{quote(path)} cannot be included: {reason}.") from error
        except JobFileError as error:
            first = error.mistakes[0]
            raise Unreadable(first.place, first.message) from error

    def _fields(self, path: str, text: str, include: Include) -> tuple[Field, ...]:
        if path in self.chain:
            files = " includes ".join((*self.chain[self.chain.index(path) :], path))
            raise Unreadable(include.place, f"Includes go round in a circle: {files}. Break it.")
        self.included.append(path)
        if len(self.chain) > CHAIN_MAX or len(self.included) > INCLUDES_MAX:
            raise Unreadable(include.place, "This job includes too many files. Include fewer.")
        inner = _Includes((*self.chain, path), self.read, self.included)
        text = text.removeprefix("\ufeff")
        at = LineIndex(path, text).at
        return Parser(text, at, inner, include.depth, include.scope).root().fields


def _candidates(file: str, include: Include) -> list[str]:
    """Return the files an include may mean; its name is relative to the file that includes it."""
    path = str(PurePath(file).parent / include.name)
    if include.kind == "file" or include.name.endswith(_ENDINGS):
        return [path]
    return [path, path + ".conf", path + ".json"]
