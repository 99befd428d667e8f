"""What a stage reads or writes, by the names that lineage tools know: a namespace and a name.

OpenLineage's conventions where the plan knows enough: a database by host and port, files by their
store.  Only what a plan shows is used, so no secret can be in a name.
"""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.model.tree import Plain

FILES = "file"
SCHEMES = {"postgresql": "postgres", "s3a": "s3", "s3n": "s3"}
PORTS = {"postgres": 5432, "mysql": 3306, "mariadb": 3306}
PLACES = ("path", "warehouse")


class Dataset(NamedTuple):
    """A dataset of OpenLineage."""

    namespace: str
    name: str


def datasets_of(
    plugin: str, stage: str, options: dict[str, Plain], tables: list[str], source: bool
) -> tuple[Dataset, ...]:
    """Return what a source reads or a sink writes.  `tables` are those that the plan names."""
    url, place = _text(options, "url"), _place(options)
    found: list[Dataset] = []
    try:
        if url.startswith("jdbc:"):
            found = list(_in_database(url.removeprefix("jdbc:"), options, tables, source))
        elif place:
            found = list(_in_store(place, plugin, options, tables, source))
    except ValueError:
        found = []  # an address that only its driver understands
    # Rows that are made up, or shown: nobody else can name them.
    own = [Dataset(f"holdfast:{plugin}", t) for t in tables or [stage]]
    return tuple(dict.fromkeys(found or own))


def _in_database(
    url: str, options: dict[str, Plain], tables: list[str], source: bool
) -> Iterator[Dataset]:
    parts = urlsplit(url)
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    namespace = f"{scheme}://{parts.hostname or ''}:{parts.port or PORTS.get(scheme, 0)}"
    database = _text(options, "database") or parts.path.strip("/")
    for table in _named(options, tables, source):
        short = table.removeprefix(f"{database}.")
        yield Dataset(namespace, f"{database}.{short}" if database else short)


def _in_store(
    place: str, plugin: str, options: dict[str, Plain], tables: list[str], source: bool
) -> Iterator[Dataset]:
    namespace, path = _split(place)
    whole = "path" in options
    for table in _named(options, tables, source) or [""]:
        filled = _filled(path, table)
        if whole or not table:
            yield Dataset(namespace, filled)
            continue
        database = _filled(_text(options, "database") or _text(options, "namespace"), table)
        folder = f"{database}.db" if plugin == "Paimon" else database
        name = table.rpartition(".")[2]
        yield Dataset(namespace, "/".join(p for p in (filled.rstrip("/"), folder, name) if p))


def _named(options: dict[str, Plain], tables: list[str], source: bool) -> list[str]:
    """Return table names: a sink's own option says them, with the source's put into its gaps."""
    own = _text(options, "table")
    if source or not own:
        return tables
    return [_filled(own, t) for t in tables or [""]] if "${" in own else [own]


def _filled(text: str, table: str) -> str:
    parts = table.split(".")
    known = {
        "table_name": parts[-1],
        "schema_name": parts[-2] if len(parts) > 2 else "",
        "database_name": parts[0] if len(parts) > 1 else "",
    }
    for name, value in known.items():
        before, found, rest = text.partition("${" + name)
        if found:
            default, _, after = rest.partition("}")
            text = before + (value or default.removeprefix(":")) + after
    return text


def _place(options: dict[str, Plain]) -> str:
    """Return where files are, as the stage or its catalog says."""
    blocks = [options, *(v for v in options.values() if isinstance(v, dict))]
    return next((t for b in blocks for key in PLACES if (t := _text(b, key))), "")


def _split(place: str) -> tuple[str, str]:
    parts = urlsplit(place)
    if parts.scheme in ("", FILES):
        return FILES, parts.path or place
    port = f":{parts.port}" if parts.port else ""
    scheme = SCHEMES.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.hostname or ''}{port}", parts.path.lstrip("/")


def _text(options: dict[str, Plain], key: str) -> str:
    value = options.get(key)
    return value if isinstance(value, str) else ""
