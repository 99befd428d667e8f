"""Open a catalog, and find tables in it."""

import re
from collections.abc import Iterator
from typing import Any

from holdfast.connectors.iceberg.hadoop import HadoopCatalog
from holdfast.connectors.iceberg.library import iceberg, troubles
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.places import place_of
from holdfast.errors import Unavailable, UserError

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


def open_catalog(options: IcebergSinkOptions) -> Any:
    """Return the catalog that a job file describes: the library's, or ours for folders."""
    library = iceberg("catalog")
    if options.catalog_type == "hadoop":
        return HadoopCatalog(options.catalog_name, place_of(options.warehouse), options.properties)
    try:
        return library.load_catalog(options.catalog_name, **options.properties)
    except (iceberg("exceptions").NotInstalledError, ValueError) as error:
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
