"""A Paimon table: create, look, and add files under a number.

The fence is inside the commit.  We read the latest snapshot, look from there back whether this user
has a number as high, and make the next snapshot on top of exactly that one.  Only one can have its
number: the one that comes second looks again.  Each snapshot of ours carries the numbers of all our
users, so that those before it may expire.
"""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.connect.sink import CommitId
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.prepare import TableOrder
from holdfast.connectors.paimon.expire import expire
from holdfast.connectors.paimon.manifests import ADD, DELETE, Manifests, Record
from holdfast.connectors.paimon.schema import PaimonSchema, load_schema, save_schema
from holdfast.connectors.paimon.snapshots import (
    APPEND,
    COMMITTED,
    USERS_MAX,
    Snapshot,
    Snapshots,
)
from holdfast.connectors.paimon.staged_files import PaimonFile
from holdfast.errors import Unavailable, UserError

VERSION = 3
EXPIRE_EVERY = 10


class PaimonTable:
    """The state of one table as it was read, and changes on top of it."""

    def __init__(self, place: Location, schema: PaimonSchema) -> None:
        self.place = place
        self.schema = schema
        self._path = Path(place.path)
        self._snapshots = Snapshots(self._path)
        self._head = self._snapshots.latest()

    @classmethod
    def load(cls, place: Location) -> "PaimonTable | None":
        """Read the latest state; None if there is no table."""
        try:
            schema = load_schema(Path(place.path))
            return None if schema is None else cls(place, schema)
        except OSError as error:
            raise Unavailable(
                f"Paimon cannot read the table {place.url}: {error}.", code="sink.table_unreadable"
            ) from error

    @classmethod
    def create(cls, place: Location, schema: PaimonSchema) -> "PaimonTable":
        """Create the table unless it exists."""
        try:
            save_schema(Path(place.path), schema)
        except OSError as error:
            raise UserError(
                f"Paimon cannot create the table {place.url}: {error}. Check who may write there.",
                code="sink.create_failed",
            ) from error
        found = cls.load(place)
        assert found is not None, "a table that was just created is there"
        return found

    @property
    def is_empty(self) -> bool:
        """Whether the table has no files."""
        return not self._live()

    def schema_of(self, number: int) -> PaimonSchema | None:
        """Return a version of the columns; None if there is no such version."""
        return load_schema(self._path, number)

    def anew(self, schema: PaimonSchema) -> "PaimonTable":
        """Return this state of the table with another version of its columns."""
        made = PaimonTable(self.place, schema)
        made._head = self._head
        return made

    def remake(self, schema: PaimonSchema) -> "PaimonTable | None":
        """Give the table another version of its columns; None if that is another one by now.

        From now on, and until the rows are gone, readers see those in the new columns.
        """
        save_schema(self._path, schema)
        there = self.schema_of(schema.number)
        return self.anew(schema) if there and there.mark == schema.mark else None

    def is_marked(self, mark: str) -> bool:
        """Say whether an incarnation has opened the table."""
        for one in self._snapshots.back_from(self._head):
            if one.committed is not None:
                return mark in one.committed
        return False

    def has(self, identifier: CommitId, files: Sequence[PaimonFile]) -> bool:
        """Say whether this commit, or a later one of its user, is done."""
        return self._has(self._head, identifier, files)

    def add(
        self, identifier: CommitId, files: Sequence[PaimonFile], order: TableOrder | None = None
    ) -> bool:
        """Add files and the number on top of this state; False if the state has moved on.

        Under an order, what is there goes in the same snapshot.
        """
        empties = order is not None and order.mode != "empty"
        gone = [{**entry, "_KIND": DELETE} for entry in self._live()] if empties else []
        entries = [*gone, *(file.entry(ADD) for file in files)]
        kind = "OVERWRITE" if gone else APPEND
        return self._publish(entries, kind, identifier, files, order.mark if order else None)

    def _has(
        self,
        head: Snapshot | None,
        identifier: CommitId,
        files: Sequence[PaimonFile],
        down_to: int = 1,
    ) -> bool:
        last = head
        for last in self._snapshots.back_from(head, down_to):
            known = last.committed
            if known is not None:
                if identifier.user in known or len(known) < USERS_MAX:
                    return known.get(identifier.user, -1) >= identifier.number
                break  # it may have been forgotten
        else:
            if last is None or last.number == 1:
                return False
        # What would tell has expired; the files themselves tell, as their names are used once.
        names = {file.name for file in files}
        return any(entry["_FILE"]["_FILE_NAME"] in names for entry in self._live(head))

    def _publish(
        self,
        entries: Sequence[Record],
        kind: str,
        identifier: CommitId,
        files: Sequence[PaimonFile],
        mark: str | None,
    ) -> bool:
        """Make the next snapshot; False if there is one by now."""
        head = self._head
        manifests = Manifests(self._path, self.schema)
        made = self._next(manifests, entries, kind, identifier, mark)
        if not self._snapshots.link(made):
            manifests.drop_written()
            return False
        if not self._counts(made, manifests, identifier, files):
            self._snapshots.path(made.number).unlink(missing_ok=True)
            return False
        self._snapshots.hint(made.number)
        if head is not None and made.number % EXPIRE_EVERY == 0:
            expire(self._path, self._snapshots, made, self.schema)
        return True

    def _counts(
        self,
        made: Snapshot,
        manifests: Manifests,
        identifier: CommitId,
        files: Sequence[PaimonFile],
    ) -> bool:
        """Say whether a snapshot that has its number now is the table's.

        It is not if others had committed one of this number, and more, and let them expire.  They
        expire in their order: it counts if the one before is still there.
        """
        before = made.number - 1
        if before and self._snapshots.path(before).exists():
            return True
        head = self._snapshots.latest()
        if head is None or head.number <= made.number:
            return True
        if any(one["_FILE_NAME"] in manifests.written for one in manifests.of(head)):
            return True
        return bool(files) and self._has(head, identifier, files, made.number + 1)

    def _next(
        self, manifests: Manifests, entries: Sequence[Record], kind: str, identifier: CommitId,
        mark: str | None,
    ) -> Snapshot:  # fmt: skip
        base: Mapping[str, Any] = self._head.content if self._head else {}
        there = manifests.merged(manifests.of(self._head))
        base_list, base_size = manifests.write_list(there)
        delta = [manifests.write(entries)] if entries else []
        delta_list, delta_size = manifests.write_list(delta)
        rows = sum(e["_FILE"]["_ROW_COUNT"] * (1 if e["_KIND"] == ADD else -1) for e in entries)
        same = base.get("schemaId") == self.schema.number
        content = {
            "version": VERSION,
            "uuid": str(uuid.uuid4()),
            "id": int(base.get("id", 0)) + 1,
            "schemaId": self.schema.number,
            "baseManifestList": base_list,
            "baseManifestListSize": base_size,
            "deltaManifestList": delta_list,
            "deltaManifestListSize": delta_size,
            "indexManifest": base.get("indexManifest") if kind == APPEND else None,
            "commitUser": identifier.user,
            "commitIdentifier": identifier.number,
            "commitKind": kind,
            "timeMillis": int(time.time() * 1000),
            "totalRecordCount": int(base.get("totalRecordCount") or 0) + rows,
            "deltaRecordCount": rows,
            "watermark": _later(base.get("watermark"), identifier.watermark),
            "statistics": base.get("statistics") if same and kind == APPEND else None,
            "nextRowId": base.get("nextRowId"),
            "properties": {COMMITTED: self._committed(identifier, mark)},
        }
        return Snapshot({key: value for key, value in content.items() if value is not None})

    def _committed(self, identifier: CommitId, mark: str | None) -> str:
        """Return the numbers of all users, with this one's, and the mark of its incarnation."""
        known: dict[str, int] = {}
        for one in self._snapshots.back_from(self._head):
            if one.committed is not None:
                known = dict(one.committed)
                break
        said = {identifier.user: identifier.number} | ({mark: 0} if mark else {})
        known = {user: at for user, at in known.items() if user not in said} | said
        return json.dumps(dict(list(known.items())[-USERS_MAX:]))

    def _live(self, head: Snapshot | None = None) -> list[Record]:
        """Return the entries of all files of a state."""
        return Manifests(self._path, self.schema).live(head or self._head)


def _later(known: int | None, said: int | None) -> int | None:
    """Return the later of two watermarks; a table's never goes back."""
    return said if known is None else known if said is None else max(known, said)
