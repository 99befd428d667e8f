"""Options are declared once, in a class, and everything else is read from it.

    @options
    class CsvOptions:
        folder: str  #: Where finished files appear.
        header: bool = True  #: Write column names as the first line.
        rows_max: int = option(1000, key="rows.max", aliases=("max_rows",), at_least=1)

A field without a default is required.  A field's type says what a job file may give: `str`, `int`,
`float`, `bool`, `Secret`, `Literal[...]`, a `StrEnum`, `list[T]`, `dict[str, T]`, `T | None`,
another options class, `Plain` for anything, or a class with a `from_node` of its own.  The `#:`
comment is the option's text in `--help`, the docs and forms.
"""

import ast
import dataclasses
import inspect
import textwrap
import threading
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, dataclass_transform, get_type_hints

from holdfast.connect.checks import CheckReport
from holdfast.connect.convert import convert, type_text
from holdfast.connect.convert import nearest as nearest
from holdfast.model.tree import Block, Entry, Node, Plain

T = TypeVar("T")
_META = "holdfast.option"
_PARSING = threading.Lock()
LISTED_MAX = 8
"""How many options a message may list."""

HINTED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Declared:
    """The arguments of `option()`."""

    key: str | None = None
    aliases: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    identity: "bool | Callable[[Any], Plain]" = False


_NOTHING = _Declared()


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option as help, docs and forms show it."""

    name: str
    key: str
    kind: str
    required: bool
    default: object
    doc: str
    aliases: tuple[str, ...]
    inner: type | None
    identity: bool = False


def option(
    default: Any = MISSING,
    *,
    key: str | None = None,
    aliases: tuple[str, ...] = (),
    at_least: float | None = None,
    at_most: float | None = None,
    identity: bool | Callable[[Any], Plain] = False,
) -> Any:
    """Declare what a type and a default cannot say: another key, older names, bounds.

    `identity`: by this option a changed job file is known to mean the same stage (`identity_of`).
    A function brings what is said in several ways into one form.
    """
    declared = _Declared(key, aliases, at_least, at_most, identity)
    if isinstance(default, (list, dict, set)):
        kept = default
        return dataclasses.field(default_factory=lambda: kept, metadata={_META: declared})
    return dataclasses.field(default=default, metadata={_META: declared})


@dataclass_transform(field_specifiers=(option,), frozen_default=True, kw_only_default=True)
def options(cls: type[T]) -> type[T]:
    """Turn a class of typed fields into an options class (a frozen dataclass)."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, (list, dict, set)) and name in cls.__annotations__:
            setattr(cls, name, option(value))
    made = dataclass(frozen=True, kw_only=True)(cls)
    made.__holdfast_options__ = True  # type: ignore[attr-defined]
    return made


def is_options(kind: object) -> bool:
    """Say whether this is an options class."""
    return isinstance(kind, type) and getattr(kind, "__holdfast_options__", False)


def read_options(cls: type[T], block: Block, about: str, report: CheckReport) -> T | None:
    """Build an options object from what a job file says, or report every mistake and return None.

    `about` names the plug-in in messages.  Unknown options are mistakes unless the class sets
    `pass_through = True` and has a field `passed` to take them.
    """
    before = len(report.mistakes)
    values: dict[str, Any] = {}
    used: list[Entry] = []
    kind: type = cls
    hints = _hints(kind)
    heads = {entry.key.partition(".")[0] for entry in block.entries}
    for field in _fields(kind):
        # Most options of most plug-ins are left out, and a leader reads those of thousands.
        named = not heads.isdisjoint(_heads(kind)[field.name])
        entry = _find(block, field, used) if named else None
        if entry is None:
            if _required(field):
                _report_missing(cls, field, hints[field.name], block, about, report)
            continue
        where = f"{about}: {_key(field)}"
        value = convert(entry.node, hints[field.name], where, report, read_options)
        if value is not MISSING:
            _check_bounds(value, _declared(field), entry.node, where, report)
            values[field.name] = value
    rest = _unused(block, used)
    if getattr(cls, "pass_through", False):
        values["passed"] = {path: entry.node for path, entry in rest}
    else:
        _report_unknown(cls, rest, about, report)
    if len(report.mistakes) > before:
        return None
    return _build(cls, values, block, about, report)


def _build(
    cls: type[T], values: dict[str, Any], block: Block, about: str, report: CheckReport
) -> T | None:
    """Make the object and let it check what no single option can (`problems`)."""
    made = cls(**values)
    kind: type = cls
    problems: Callable[[], Iterator[tuple[str, str]]] | None = getattr(made, "problems", None)
    found = list(problems()) if problems else []
    for name, message in found:
        field = next((f for f in _fields(kind) if f.name == name), None)
        entry = _find(block, field, []) if field else None
        report.error(entry.node.place if entry else block.place, f"{about}: {message}")
    return None if found else made


def describe(cls: type) -> tuple[OptionInfo, ...]:
    """Return every option of a class, in the order declared."""
    docs, hints = _docs(cls), _hints(cls)
    return tuple(
        OptionInfo(
            name=f.name,
            key=_key(f),
            kind=type_text(hints[f.name]),
            required=_required(f),
            default=None if _required(f) else _default(f),
            doc=docs.get(f.name, ""),
            aliases=_declared(f).aliases,
            inner=_inner(hints[f.name]),
            identity=bool(_declared(f).identity),
        )
        for f in _fields(cls)
    )


def identity_of(made: object) -> dict[str, Plain]:
    """Return what identifies a stage with these options: those declared as its identity.

    What is left out, or as it would be if it were, does not count.
    """
    found: dict[str, Plain] = {}
    kind: type = type(made)
    for field in _fields(kind):
        how, value = _declared(field).identity, getattr(made, field.name)
        if how and value is not None and (_required(field) or value != _default(field)):
            found[_key(field)] = how(value) if callable(how) else _plain(value)
    return found


def _plain(value: Any) -> Plain:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if is_options(type(value)):
        return identity_of(value)
    assert isinstance(value, (str, int, float, bool)), f"{type(value)} can be no identity"
    return value


@cache
def _hints(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields; a leader reads the options of thousands of jobs."""
    return get_type_hints(cls)


@cache
def _fields(cls: type) -> tuple[Field[Any], ...]:
    """Return the fields of a class, last those of bases that set `shown_last = True`."""
    bases = (base for base in cls.__mro__ if vars(base).get("shown_last"))
    last = {name for base in bases for name in inspect.get_annotations(base)}
    found = [f for f in dataclasses.fields(cls) if f.name != "passed"]
    return tuple(sorted(found, key=lambda f: f.name in last))


@cache
def _heads(cls: type) -> dict[str, frozenset[str]]:
    """Return how the names begin that each field goes by, up to their first dots."""
    return {
        f.name: frozenset(k.partition(".")[0] for k in (_key(f), *_declared(f).aliases))
        for f in _fields(cls)
    }


def _declared(field: Field[Any]) -> _Declared:
    declared = field.metadata.get(_META, _NOTHING)
    assert isinstance(declared, _Declared)
    return declared


def _key(field: Field[Any]) -> str:
    return _declared(field).key or field.name


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _find(block: Block, field: Field[Any], used: list[Entry]) -> Entry | None:
    """Return the entry for an option under its key or an older name; the key wins."""
    found = None
    for key in (_key(field), *_declared(field).aliases):
        entry = block.find(key)
        if entry:
            used.append(entry)
            found = found or entry
    return found


def _unused(block: Block, used: list[Entry], prefix: str = "") -> list[tuple[str, Entry]]:
    """Return the outermost entries that no option took."""
    rest: list[tuple[str, Entry]] = []
    for entry in block.entries:
        if any(entry is u for u in used):
            continue
        path = prefix + entry.key
        holds = isinstance(entry.node, Block) and any(_within(entry.node, u) for u in used)
        if holds and isinstance(entry.node, Block):
            rest += _unused(entry.node, used, path + ".")
        else:
            rest.append((path, entry))
    return rest


def _within(block: Block, wanted: Entry) -> bool:
    return any(
        e is wanted or (isinstance(e.node, Block) and _within(e.node, wanted))
        for e in block.entries
    )


def _report_missing(
    cls: type, field: Field[Any], hint: Any, block: Block, about: str, report: CheckReport
) -> None:
    keys = " or ".join(f"'{k}'" for k in (_key(field), *_declared(field).aliases))
    doc = _docs(cls).get(field.name, "")
    message = f"{about}: required option {keys} ({type_text(hint)}) is missing."
    report.error(block.place, f"{message} {doc}".rstrip())


def _report_unknown(
    cls: type, rest: list[tuple[str, Entry]], about: str, report: CheckReport
) -> None:
    known = [k for f in _fields(cls) for k in (_key(f), *_declared(f).aliases)] if rest else []
    for path, entry in rest:
        inside = _inside(path, entry)
        taken = any(k.startswith(path + ".") for k in known)
        taken = taken or any(instead(about, name) for name, _ in inside)
        for name, leaf in (inside if taken else None) or [(path, entry)]:
            there = instead(about, name)
            if there:
                report.lacks(leaf.place, f"{about}: Holdfast has no option '{name}'. {there}")
                continue
            # To find what was meant takes a while; with a thousand mistakes that is acceptable.
            few = len(report.mistakes) + len(report.warnings) < HINTED_MAX
            hint = (nearest(name, known) or _listed(cls)) if few else ""
            report.unknown(leaf.place, f"{about}: unknown option '{name}'.{hint}")


def _inside(path: str, entry: Entry) -> list[tuple[str, Entry]]:
    if not isinstance(entry.node, Block):
        return []
    return [(f"{path}.{p}", e) for p, e in entry.node.leaves()]


def _listed(cls: type) -> str:
    """Return the options of a class for a message, where they are few."""
    keys = [_key(f) for f in _fields(cls)]
    if not keys:
        return " It takes no options of its own."
    return f" Its options: {', '.join(keys)}." if len(keys) <= LISTED_MAX else ""


def _check_bounds(value: Any, d: _Declared, node: Node, where: str, report: CheckReport) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if d.at_least is not None and value < d.at_least:
        report.error(node.place, f"{where} must be at least {d.at_least}, not {value}.")
    if d.at_most is not None and value > d.at_most:
        report.error(node.place, f"{where} must be at most {d.at_most}, not {value}.")


def _inner(hint: Any) -> type | None:
    """Return the options class inside a type, e.g. that of `list[Rule] | None`."""
    if is_options(hint):
        found: type = hint
        return found
    for part in getattr(hint, "__args__", ()):
        inner = _inner(part)
        if inner:
            return inner
    return None


def _docs(cls: type) -> dict[str, str]:
    """Return the `#:` comment of each field; none where the source is not at hand."""
    # Two threads that parse at the same time fail in Python 3.11 (cpython issue 106905).
    with _PARSING:
        return _read_docs(cls)


@cache
def _read_docs(cls: type) -> dict[str, str]:
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not is_options(base):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):
            continue
        docs |= _comments(source)
    return docs


def _comments(source: str) -> dict[str, str]:
    """Map field names to the `#:` comments on their lines, or on the lines just above."""
    lines = source.splitlines(keepends=True)
    notes: dict[int, str] = {}
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.type == tokenize.COMMENT and token.string.startswith("#:"):
            notes[token.start[0]] = token.string[2:].strip()
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for node in body.body:
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        last = node.end_lineno or node.lineno
        parts = [notes[n] for n in range(node.lineno, last + 1) if n in notes]
        above = node.lineno - 1
        while above in notes and lines[above - 1].lstrip().startswith("#:"):
            parts.insert(0, notes[above])
            above -= 1
        docs[node.target.id] = " ".join(" ".join(parts).split())
    return docs


_NO_KERBEROS = (
    "Kerberos is not supported; name a place or an account that can be reached without it."
)
_KERBEROS = dict.fromkeys(
    ("use_kerberos", "kerberos_principal", "kerberos_keytab_path", "krb5_path"), _NO_KERBEROS
)
_HADOOP = {
    "remote_user": "Files are written as the user that the worker runs as.",
    "hdfs_site_path": "Give Hadoop's settings in env as spark.hadoop.NAME = value.",
}
_UPDATE = "Every run reads all files that it finds; choose them by file_filter_pattern."
_SCAN = "With discovery_mode = continuous new files are found as they come; remove it."
_START = "All files that are there are read; choose them by file_filter_modified_start."
_MOVED = "Files that were read stay where they are; move them after the run."
_SPLIT = "Large files are split without it, at the ends of rows."
_LATER_TABLES = "A table that fails, fails the job; give it a job of its own."
_ALL_SINKS = {"multi_table.failure_policy": _LATER_TABLES}

LACKS: dict[str, dict[str, str]] = {
    "source LocalFile": {
        **_KERBEROS, **_HADOOP,
        "scan_interval": _SCAN, "start_mode": _START,
        "sync_mode": _UPDATE, "target_path": _UPDATE, "target_hadoop_conf": _UPDATE,
        "update_strategy": _UPDATE, "compare_mode": _UPDATE,
        "post_sync_action": _MOVED, "backup_path": _MOVED, "retention_max_age": _MOVED,
        "retention_check_interval": _MOVED,
        "enable_file_split": _SPLIT, "file_split_size": _SPLIT,
    },
    "sink LocalFile": {
        **_ALL_SINKS, **_KERBEROS, **_HADOOP,
        "archive_compress_codec": "Files are packed one by one: use compress_codec.",
    },
    "sink Jdbc": {
        **_ALL_SINKS, **_KERBEROS,
        "dialect": "The dialect follows from url: PostgreSQL and MySQL are known.",
        "schema": "Name the schema before the table: table = \"schema.name\".",
        "tablePrefix": "Write it into table: table = \"prefix_${table_name}\".",
        "tableSuffix": "Write it into table: table = \"${table_name}_suffix\".",
        "socket_timeout_ms": "A statement may take as long as it takes; remove it.",
        "connect_timeout_ms": "Use connection_check_timeout_sec, which is in seconds.",
        "is_primary_key_updated": "An update of a key is a delete and an insert; remove it.",
        "support_upsert_by_insert_only": "Use enable_upsert = true with primary_keys.",
        "access_key_id": "Give user and password.",
        "secret_access_key": "Give user and password.",
        "region": "Give url, user and password.",
        "decimal_type_narrowing": "Types are kept as they are; remove it.",
        "int_type_narrowing": "Types are kept as they are; remove it.",
        "handle_blob_as_string": "Types are kept as they are; cast with a Sql transform.",
    },
    "sink Iceberg": {
        **_ALL_SINKS, **_KERBEROS,
        "custom_sql": "Use data_save_mode = DROP_DATA to empty the table first.",
        "iceberg.table.config": "Use iceberg.table.write-props or iceberg.table.auto-create-props.",
    },
    "sink Paimon": {
        **_ALL_SINKS,
        "paimon.table.non-primary-key": "Without paimon.table.primary-keys a table gets the keys"
        " of its source; a Sql transform that names the columns drops them.",
        "catalog_name": "A filesystem catalog is known by its warehouse; remove it.",
        "user": "A filesystem catalog has no users.",
        "password": "A filesystem catalog has no users.",
        "dynamic-bucket.target-row-num": "Give a number of buckets in paimon.table.write-props:"
        " bucket = 4.",
        "dynamic-bucket.initial-buckets": "Give a number of buckets in paimon.table.write-props:"
        " bucket = 4.",
        "changelog-tmp-path": "No temporary place is needed; remove it.",
    },
    "sink Console": _ALL_SINKS,
    "sink Assert": _ALL_SINKS,
    "transform DataValidator": {
        "row_error_handle_way.error_table": "Rows that fail are counted with SKIP, or end the job"
        " with FAIL.",
    },
}  # fmt: skip
"""By role and connector: an option and what a user of it does here."""


def instead(about: str, option: str) -> str | None:
    """Return what to do about an option that SeaTunnel has and ours lacks; None: no such option.

    `about` names the plug-in as messages do, with more behind a colon.
    """
    known = LACKS.get(about.partition(":")[0], {})
    return next((said for o, said in known.items() if _same(o, option)), None)


def _same(known: str, option: str) -> bool:
    return known == option or option.startswith(known + ".")
