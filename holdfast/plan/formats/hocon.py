"""HOCON job files, as SeaTunnel reads them: raw fields of `hocon_parse` are given their meaning.

Duplicate keys are merged, then what `${}` names is put in.  A key may be given several times, and a
`${}` in a later value may mean an earlier one, so each key keeps all its *versions* until the end.
A `${}` that nothing answers stays as text, because sinks fill some of them for each table.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from holdfast.errors import JobFileError, SourceLocation
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.formats.hocon_parse import (
    Field,
    Fields,
    Include,
    Joined,
    Listed,
    Parser,
    Raw,
    Ref,
)
from holdfast.plan.syntax import (
    DEPTH_MAX,
    NODE_SIZE,
    ROLES,
    SIZE_MAX,
    At,
    LineIndex,
    Unreadable,
    merged,
    quote,
    size,
)

Read = Callable[[str], str]
"""Return the text of a file, or raise OSError (FileNotFoundError if there is none)."""

CHAIN_MAX = 16
INCLUDES_MAX = 1000
_ENDINGS = (".conf", ".json", ".hocon", ".config", ".template", ".properties")

Given = Callable[[str, SourceLocation], Node | None]
"""Return the value of a variable given from outside, or None."""

Warn = Callable[[SourceLocation, str], None]


@dataclass(slots=True, eq=False)
class Slot:
    """All that was given under one key; `place` is where the key last stood."""

    place: SourceLocation
    dotted: bool
    versions: list["Value | More"] = field(default_factory=list)

    def add(self, value: "Value | More", place: SourceLocation) -> None:
        last = self.versions[-1] if self.versions else None
        if isinstance(last, Draft) and isinstance(value, Draft):
            last.take(value)
        else:
            self.versions.append(value)
            self.place = place


@dataclass(slots=True, eq=False)
class Draft:
    """A block that still takes fields."""

    place: SourceLocation
    slots: dict[str, Slot] = field(default_factory=dict)

    def put(
        self, key: str, value: "Value | More", place: SourceLocation, dotted: bool = False
    ) -> None:
        self.slots.setdefault(key, Slot(place, dotted)).add(value, place)

    def take(self, other: "Draft") -> None:
        for key, slot in other.slots.items():
            for value in slot.versions:
                self.put(key, value, slot.place, slot.dotted)


@dataclass(frozen=True, slots=True)
class Many:
    """A list whose items are not resolved yet."""

    items: tuple["Value", ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Sides:
    """Values side by side; a bare string is the blank between two of them."""

    parts: tuple["Value | str", ...]
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class More:
    """An item for the end of the list that stood under the key before."""

    item: "Value"
    place: SourceLocation


Value = Scalar | Ref | Draft | Many | Sides


def build_job(fields: Fields, warn: Warn, unique: bool = False) -> Draft:
    """Return the top level of a job, with source, transform and sink as lists of plug-ins.

    `unique` refuses a duplicate key, as JSON does.
    """
    job = Draft(fields.place)
    for one in fields.fields:
        role, dot, plugin = one.path[0].partition(".")
        if role in ROLES and dot and one.dotted:
            inner = replace(one, path=(plugin, *one.path[1:]))
            job.put(role, More(_plugin(inner, unique), one.place), one.place)
        elif one.path[0] in ROLES and len(one.path) == 1 and not one.append:
            _put_plugins(job, one, warn, unique)
        else:
            _put(job, one, unique)
    return job


def _put_plugins(job: Draft, one: Field, warn: Warn, unique: bool) -> None:
    role, value = one.path[0], _plugins(one.value, unique)
    before = job.slots[role].versions if role in job.slots else []
    if before and isinstance(value, Many) and all(isinstance(v, More) for v in before):
        for item in value.items:  # only `source.Name { }` stood before: all of them count
            job.put(role, More(item, item.place), one.place)
        return
    if before:
        _check_unique(job, one, unique)
        warn(
            one.place,
            f"'{role}' occurs twice, and as in SeaTunnel the later replaces the earlier."
            " Put all plug-ins into one block.",
        )
    job.put(role, value, one.place)


def build(raw: Raw, unique: bool = False) -> Value:
    """Return a raw value with the fields of its blocks merged."""
    match raw:
        case Fields(fields=fields):
            block = Draft(raw.place)
            for one in fields:
                _put(block, one, unique)
            return block
        case Listed(items=items):
            return Many(tuple(build(item, unique) for item in items), raw.place)
        case Joined(parts=parts):
            built = (p if isinstance(p, str) else build(p, unique) for p in parts)
            return Sides(tuple(built), raw.place)
        case _:
            return raw


def _put(block: Draft, one: Field, unique: bool) -> None:
    _check_unique(block, one, unique)
    block.put(one.path[0], _below(one, unique), one.place, one.dotted)


def _check_unique(block: Draft, one: Field, unique: bool) -> None:
    if unique and one.path[0] in block.slots:
        raise Unreadable(one.place, f"The key {quote(one.path[0])} occurs twice. Remove one.")


def _below(one: Field, unique: bool) -> Value | More:
    """Return a field's value inside the blocks that its path names after the first key."""
    built = build(one.value, unique)
    value: Value | More = More(built, one.place) if one.append else built
    for key in reversed(one.path[1:]):
        outer = Draft(one.place)
        outer.put(key, value, one.place)
        value = outer
    return value


def _plugins(raw: Raw, unique: bool) -> Value:
    """Turn the block of a role into a list, where a plug-in may stand more than once."""
    match raw:
        case Fields(fields=fields):
            return Many(tuple(_plugin(one, unique) for one in fields), raw.place)
        case Joined(parts=parts):
            made = (p if isinstance(p, str) else _plugins(p, unique) for p in parts)
            return Sides(tuple(made), raw.place)
        case _:
            return build(raw, unique)


def _plugin(one: Field, unique: bool) -> Value:
    name = one.path[0]
    named = Draft(one.place)
    named.put("plugin_name", Scalar(name, name, one.place), one.place)
    options = _below(replace(one, append=False), unique)
    match options:
        case Draft():
            named.take(options)
            return named
        case Ref() | Sides():
            return Sides((named, options), one.place)
        case _:
            raise Unreadable(
                one.place,
                f"{quote(name)} is a plug-in here, so its options must be in a block."
                f" Write {name} {{ ... }}.",
            )


class Resolver:
    """Turns merged values into the tree.  `read` holds the top-level keys that `${}` has used."""

    def __init__(self, job: Draft, given: Given) -> None:
        self.job, self.given = job, given
        self.read: set[str] = set()
        self._active: list[tuple[Slot, int]] = []
        self._depth = 0
        self._spent = 0

    def block(self, draft: Draft, level: int = 0) -> Block:
        """Return a block.  At the job's level and its plug-ins' (0 and 1) dotted keys nest.

        Deeper, keys are names of columns, headers or properties, whose dots belong to them.
        """
        found: list[tuple[bool, Entry]] = []
        for key, slot in draft.slots.items():
            node = self._slot(slot, len(slot.versions), level + 1)
            if node is not None:
                found.append((slot.dotted, Entry(key, node, slot.place)))
        entries = _nested(found) if level <= 1 else tuple(e for _, e in found)
        return Block(entries, draft.place)

    def value(self, value: Value, level: int) -> Node | None:
        """Return the node for a value; None if an optional `${?}` left nothing of it."""
        self._depth += 1
        if self._depth > 2 * DEPTH_MAX:
            raise Unreadable(value.place, "Substitutions nest too deep here. Nest less.")
        node = self._value(value, level)
        self._depth -= 1
        return node

    def _value(self, value: Value, level: int) -> Node | None:
        match value:
            case Scalar():
                return value
            case Draft():
                return self.block(value, level)
            case Many(items=items):
                nodes = (self.value(item, level) for item in items)
                return Items(tuple(n for n in nodes if n is not None), value.place)
            case Ref():
                return self._ref(value)
            case Sides():
                return self._sides(value, level)

    def _slot(self, slot: Slot, upto: int, level: int) -> Node | None:
        """Return what the first `upto` versions of a key come to; the last one counts most."""
        blocks: list[Block] = []
        added: list[Node] = []
        for i in reversed(range(upto)):
            version = slot.versions[i]
            more = isinstance(version, More)
            if more and blocks:
                break
            self._active.append((slot, i))
            node = self.value(version.item if isinstance(version, More) else version, level)
            self._active.pop()
            if node is None:
                continue
            if more:
                added.append(node)
            elif added:
                return _extended(node, added)
            elif isinstance(node, Block):
                blocks.append(node)
            else:
                return merged(*reversed(blocks)) if blocks else node
        if added:
            return Items(tuple(reversed(added)), slot.place)
        return merged(*reversed(blocks)) if blocks else None

    def _ref(self, ref: Ref) -> Node | None:
        node = self._find(self.job, f"{ref.scope}.{ref.name}", ref) if ref.scope else None
        if node is None:
            node = self._find(self.job, ref.name, ref)
        if node is None:
            node = self.given(ref.name, ref.place)
        if node is None and not ref.optional:
            node = Scalar(ref.literal, ref.literal, ref.place)
        self._spent += NODE_SIZE if node is None else size(node, SIZE_MAX - self._spent)
        if self._spent > SIZE_MAX:
            raise Unreadable(ref.place, "Substitutions make this job too large. Use fewer.")
        return None if node is None else replace(node, place=ref.place)

    def _find(self, draft: Draft, name: str, ref: Ref) -> Node | None:
        """Return the value of a dotted path, whether the file nested it or not."""
        for key, slot in draft.slots.items():
            node = None
            if key == name:
                node = self._look_up(slot, ref)
            elif name.startswith(key + "."):
                node = self._find_below(slot, name[len(key) + 1 :], ref)
            if node is not None:
                if draft is self.job:
                    self.read.add(key)
                return node
        return None

    def _find_below(self, slot: Slot, rest: str, ref: Ref) -> Node | None:
        for i in reversed(range(len(slot.versions))):
            version = slot.versions[i]
            found = None
            if isinstance(version, Draft):
                found = self._find(version, rest, ref)
            elif isinstance(version, Ref | Sides) and (slot, i) not in self._active:
                self._active.append((slot, i))
                node = self.value(version, DEPTH_MAX)
                self._active.pop()
                entry = node.find(rest) if isinstance(node, Block) else None
                found = entry.node if entry else None
            if found is not None:
                return found
        return None

    def _look_up(self, slot: Slot, ref: Ref) -> Node | None:
        """Return a key's value; while that is being worked out, the versions before it."""
        busy = [i for active, i in self._active if active is slot]
        if not busy:
            return self._slot(slot, len(slot.versions), DEPTH_MAX)
        node = self._slot(slot, busy[-1], DEPTH_MAX)
        if node is None and not ref.optional and self._active[-1][0] is not slot:
            raise Unreadable(ref.place, f"{ref.literal} goes round in a circle. Break it.")
        return node

    def _sides(self, sides: Sides, level: int) -> Node | None:
        parts = [p if isinstance(p, str) else self.value(p, level) for p in sides.parts]
        nodes = [p for p in parts if p is not None and not isinstance(p, str)]
        if not nodes:
            return None
        if len(nodes) == 1 and not any(isinstance(p, str) for p in parts):
            return nodes[0]
        blocks = [n for n in nodes if isinstance(n, Block)]
        lists = [n for n in nodes if isinstance(n, Items)]
        if len(blocks) == len(nodes):
            return merged(*blocks)
        if len(lists) == len(nodes):
            return Items(tuple(i for one in lists for i in one.items), sides.place)
        if blocks or lists:
            raise Unreadable(
                sides.place,
                "Values of different kinds stand side by side here: blocks join blocks, lists join"
                " lists, and text joins text. Put a comma or a new line between them.",
            )
        text = "".join(
            p if isinstance(p, str) else p.text for p in parts if isinstance(p, str | Scalar)
        )
        return Scalar(text, text, sides.place)


def _extended(node: Node, added: list[Node]) -> Items:
    """Return a list with the items that `+=` added, which were found last first."""
    if not isinstance(node, Items):
        raise Unreadable(added[-1].place, "+= adds to a list, but here stood another value.")
    return replace(node, items=(*node.items, *reversed(added)))


def _nested(found: list[tuple[bool, Entry]]) -> tuple[Entry, ...]:
    """Put unquoted dotted keys into blocks, unless a value is already where a block would be.

    `start_mode` and `start_mode.offsets` are two options of one plug-in: both must survive.
    """
    values = {e.key for _, e in found if not isinstance(e.node, Block)}
    single: list[Block] = []
    for dotted, entry in found:
        path, node = entry.key.split("."), entry.node
        heads = {".".join(path[:i]) for i in range(1, len(path))}
        if not dotted or not all(path) or len(path) > DEPTH_MAX or heads & values:
            path = [entry.key]
        for key in reversed(path[1:]):
            node = Block((Entry(key, node, entry.place),), entry.place)
        single.append(Block((Entry(path[0], node, entry.place),), entry.place))
    return merged(*single).entries if single else ()


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
