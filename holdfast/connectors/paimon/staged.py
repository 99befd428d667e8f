"""Stage rows of one table, and say how each file will be added to it."""

import time
import uuid

from holdfast.connect.rows import Rows
from holdfast.connectors.lake.footers import Part
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.refuse import refuse_nulls
from holdfast.connectors.paimon.keyed import deletes_in, stage_keyed
from holdfast.connectors.paimon.rows import stage_rows
from holdfast.connectors.paimon.staged_files import Facts, PaimonStaged, file_of
from holdfast.connectors.paimon.table import PaimonTable

NUMBERS_A_MS = 1 << 20
"""The number of a row says when it was staged, with room for Java's writers, which count on."""


def stage_table(rows: Rows, table: PaimonTable, folder: str, about: str) -> PaimonStaged:
    """Write rows into a folder below a table; remove it again if there is nothing in it."""
    place, schema = table.place, table.schema
    now_ms = int(time.time() * 1000)
    try:
        if schema.keys:
            number = now_ms * NUMBERS_A_MS
            parts = stage_keyed(rows, table, place.below(folder), about, number)
            refuse_nulls(schema.columns(about), parts, about)
            facts = [_facts(part, place.below(folder), now_ms, number) for part in parts]
        else:
            parts = stage_rows(rows, table, place.below(folder), about)
            refuse_nulls(schema.columns(about), parts, about)
            facts = [Facts(now_ms, 0, part.rows - 1) for part in parts]
    except BaseException:
        place.remove(folder)
        raise
    if not parts:
        place.remove(folder)
    # Spark gives files of one task the same name in every partition, and Paimon every file its own.
    unique = uuid.uuid4()
    files = [
        file_of(part, f"data-{unique}-{at}.parquet", folder, schema, known)
        for at, (part, known) in enumerate(zip(parts, facts, strict=True))
    ]
    # Absolute: a commit may be made in another working folder.
    return PaimonStaged(place.plain_url, folder, schema.number, schema.mark, files)


def _facts(part: Part, folder: Location, now_ms: int, number: int) -> Facts:
    return Facts(now_ms, number, number, deletes_in(part, folder))
