"""Open a catalog, and find tables in it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.connect.library import load_library, need_library
from holdfast.connectors.iceberg.hadoop_catalog import HadoopCatalog
from holdfast.connectors.iceberg.library import iceberg, troubles
from holdfast.connectors.iceberg.locations import place_of
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.lake.location import Location, look_around, refuse_unwritable
from holdfast.errors import Unavailable, UserError

CATALOG_LIBRARIES = {"glue": "boto3", "hive": "thrift"}
"""What a catalog of a type needs besides; pyiceberg has extras of these names."""

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


def check_libraries(kind: str) -> None:
    """Raise UserError if a library is not here that catalogs of this type need."""
    for module in ("pyiceberg", "sqlalchemy"):
        need_library(module, "Iceberg", "iceberg")
    if kind in CATALOG_LIBRARIES:
        need_library(CATALOG_LIBRARIES[kind], "Iceberg", kind, of="pyiceberg")


def open_catalog(options: IcebergSinkOptions) -> Any:
    """Return the catalog that a job file describes: the library's, or ours for folders."""
    library = iceberg("catalog")
    if options.catalog_type == "hadoop":
        return HadoopCatalog(options.catalog_name, place_of(options.warehouse), options.properties)
    try:
        return library.load_catalog(options.catalog_name, **options.properties)
    except (iceberg("exceptions").NotInstalledError, ValueError, ImportError) as error:
        raise UserError(
            f"Iceberg cannot open the catalog {options.catalog_name}: {error}."
            " Check iceberg.catalog.config.",
            code="sink.catalog",
        ) from error
    except troubles() as error:
        raise Unavailable(
            f"Iceberg cannot reach the catalog {options.catalog_name}: {error}.",
            code="sink.catalog_unavailable",
        ) from error


def look_around_warehouse(options: IcebergSinkOptions) -> list[str]:
    """Return why nothing can be written to a warehouse of folders."""
    if options.catalog_type not in ("hadoop", "sql") or not options.warehouse:
        return []
    return list(look_around("Iceberg", place_of(options.warehouse, options.s3)))


class NoCatalog:
    """A catalog that is yet to be created: it has no tables."""

    def load_table(self, identifier: tuple[str, ...]) -> Any:
        """Raise NoSuchTableError."""
        raise iceberg("exceptions").NoSuchTableError(f"there is no table {'.'.join(identifier)}")


def open_to_look(options: IcebergSinkOptions) -> Any:
    """Return the catalog to look at: nothing in it, or around it, is created or changed.

    The library creates the tables of a catalog of type `sql`, and SQLite its file, where they are
    missing.
    """
    if options.catalog_type == "hadoop":
        iceberg("catalog")
        warehouse = place_of(options.warehouse)
        return HadoopCatalog(options.catalog_name, warehouse, options.properties, hints=False)
    if options.catalog_type != "sql":
        return open_catalog(options)
    if _is_new_file(options.catalog["uri"]):
        return NoCatalog()
    as_it_is = {"init_catalog_tables": "false", "schema_version": "v0"}
    catalog = open_catalog(replace(options, catalog={**options.catalog, **as_it_is}))
    inspect = load_library("sqlalchemy", "Iceberg", "iceberg").inspect
    try:
        there = inspect(catalog.engine).has_table("iceberg_tables")
    except troubles() as error:
        raise Unavailable(
            f"Iceberg cannot reach the catalog {options.catalog_name}: {error}. Check uri in"
            " iceberg.catalog.config, and that the server runs.",
            code="sink.catalog_unavailable",
        ) from error
    return catalog if there else NoCatalog()


def _is_new_file(uri: str) -> bool:
    """Say whether a catalog is a new file of SQLite; UserError if none can be created."""
    url = load_library("sqlalchemy", "Iceberg", "iceberg").engine.make_url(uri)
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return False
    file = Path(url.database)
    if not file.parent.is_dir():
        raise UserError(
            f"Iceberg cannot open the catalog in {file}: there is no folder {file.parent}."
            " Make it, or correct uri in iceberg.catalog.config.",
            code="sink.catalog",
        )
    if file.exists():
        return False
    refuse_unwritable("Iceberg", Location(str(file.parent)))
    return True


def tables_like(catalog: Any, options: IcebergSinkOptions) -> Iterator[tuple[str, ...]]:
    """Yield the tables that exist for a namespace and a table, whatever placeholders stand for."""
    if not _PLACEHOLDER.search(options.named):
        yield options.identifier
        return
    wanted = ".*".join(re.escape(part) for part in _PLACEHOLDER.split(options.named))
    try:
        listed = [t for space in catalog.list_namespaces() for t in catalog.list_tables(space)]
    except troubles() as error:
        raise Unavailable(
            f"Iceberg cannot list the tables of {options.catalog_name}: {error}.",
            code="sink.catalog_unavailable",
        ) from error
    yield from (tuple(found) for found in listed if re.fullmatch(wanted, ".".join(found)))
