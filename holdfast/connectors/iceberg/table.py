"""An Iceberg table, through the library: create, look, and add files under a number.

The fence is inside the commit.  We read the table's state, look there whether this user has a
number as high, and add files and number on top of exactly that state.  The catalog refuses it if
the table has moved on; the library would then add them to the new state, which ours does not let
it: we look again.  The number is in the snapshot and, as snapshots expire, a property of the table.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connect.sink import CommitId
from holdfast.connectors.iceberg.changes import append_to, change_of, remake, shape_of, spec_of
from holdfast.connectors.iceberg.library import iceberg, troubles
from holdfast.connectors.iceberg.locations import place_of
from holdfast.connectors.iceberg.staged_files import IcebergFile, data_file
from holdfast.connectors.iceberg.types import from_iceberg
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.prepare import TableOrder
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.model.table import Column
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

USER, NUMBER, WATERMARK = "holdfast.user", "holdfast.number", "holdfast.watermark"
COMMITTED = "holdfast.committed."
KEPT = "holdfast.snapshots-to-keep"
KEPT_DEFAULT = 10
"""So many snapshots of ours stay; those of others are theirs to expire."""

NAME_MAPPING = "schema.name-mapping.default"
NEW_TABLE = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""What keeps the state of a table small that gets a commit every few seconds."""


class IcebergTable:
    """The state of one table as it was read, and changes on top of it."""

    def __init__(self, catalog: Any, table: "Table", s3: dict[str, str]) -> None:
        self._catalog = catalog
        self._table = table
        self._s3 = s3

    @classmethod
    def load(
        cls, catalog: Any, identifier: Sequence[str], s3: dict[str, str]
    ) -> "IcebergTable | None":
        """Read the latest state; None if there is no table."""
        errors = iceberg("exceptions")
        try:
            return cls(catalog, catalog.load_table(tuple(identifier)), s3)
        except (errors.NoSuchTableError, errors.NoSuchNamespaceError):
            return None
        except troubles() as error:
            raise Unavailable(
                f"Iceberg cannot read the table {'.'.join(identifier)}: {error}.",
                code="sink.table_unreadable",
            ) from error

    @classmethod
    def create(
        cls, catalog: Any, identifier: Sequence[str], schema: "Schema", partitions: Sequence[str],
        properties: Mapping[str, str], s3: dict[str, str],
    ) -> "IcebergTable":  # fmt: skip
        """Create the table unless it exists."""
        errors = iceberg("exceptions")
        name = tuple(identifier)
        try:
            catalog.create_namespace_if_not_exists(name[:-1])
            made = catalog.create_table(
                name, schema, partition_spec=spec_of(schema, partitions),
                properties={**NEW_TABLE, **properties},
            )  # fmt: skip
        except errors.TableAlreadyExistsError:
            made = catalog.load_table(name)
        except troubles(ValueError) as error:
            raise UserError(
                f"Iceberg cannot create the table {'.'.join(name)}: {error}."
                " Check who may write there, and the table's properties.",
                code="sink.create_failed",
            ) from error
        return cls(catalog, made, s3)

    def shape(
        self, schema: "Schema", partitions: Sequence[str], properties: Mapping[str, str]
    ) -> Plain:
        """Return what the table is to become when it is recreated.

        Columns and partitions get numbers that it never had, so that files which are staged for
        them fit no other table.
        """
        return shape_of(self._metadata, schema, partitions, properties)

    def anew(self, shape: Plain) -> "IcebergTable":
        """Return the table as it will be once it is recreated, so that files can be staged for
        it."""
        change = change_of(self._table)
        remake(change, shape)
        library, old = iceberg("table"), self._table
        made = library.Table(
            old.name(), change.table_metadata, old.metadata_location, old.io, self._catalog
        )
        return IcebergTable(self._catalog, made, self._s3)

    @property
    def name(self) -> list[str]:
        """The namespace, piece by piece, and the table."""
        return list(self._table.name())

    @property
    def schema(self) -> "Schema":
        """The columns as Iceberg has them."""
        return self._metadata.schema()

    def fields(self, *, by_name: bool) -> dict[str, str]:
        """Return what files rely on: the type, and perhaps the name, of each column's number."""
        return {
            str(f.field_id): f"{f.name}: {f.field_type}" if by_name else str(f.field_type)
            for f in self.schema.fields
        }

    @property
    def columns(self) -> list[Column]:
        """The columns of the table."""
        return from_iceberg(self.schema, f"Iceberg cannot write to {'.'.join(self.name)}")

    @property
    def partitions(self) -> list[str]:
        """The columns the table is partitioned by."""
        sources = (field.source_id for field in self._metadata.spec().fields)
        return [self.schema.find_field(number).name for number in sources]

    @property
    def spec(self) -> int:
        """The number of how the table is partitioned now."""
        return self._metadata.default_spec_id

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the table."""
        return self._metadata.properties

    @property
    def location(self) -> str:
        """Where the table is, as its catalog says it."""
        return self._metadata.location.rstrip("/")

    @property
    def place(self) -> Location:
        """Where the table is."""
        return place_of(self.location, self._s3)

    @property
    def is_empty(self) -> bool:
        """Whether the table has no files."""
        head = self._metadata.current_snapshot()
        return head is None or not any(
            manifest.has_added_files() or manifest.has_existing_files()
            for manifest in head.manifests(self._table.io)
        )

    def refusals(self) -> list[str]:
        """Return what this table asks of its writers that we cannot do."""
        transforms = iceberg("transforms")
        wrong = [
            f"partitions by {field.transform} ({field.name})"
            for field in self._metadata.spec().fields
            if not isinstance(field.transform, transforms.IdentityTransform)
        ]
        if self._metadata.format_version > 2:
            wrong.append(f"format version {self._metadata.format_version}")
        return wrong

    def last(self, user: str) -> int:
        """Return the highest number that this user has committed; -1 for none."""
        found = [int(self.properties.get(COMMITTED + user, -1))]
        for snapshot in self._metadata.snapshots:
            facts = snapshot.summary.additional_properties if snapshot.summary else {}
            if facts.get(USER) == user:
                found.append(int(facts[NUMBER]))
        return max(found)

    def add(
        self, identifier: CommitId, files: Sequence[IcebergFile], location: str, *,
        by_name: bool = False, order: TableOrder | None = None,
    ) -> bool:  # fmt: skip
        """Add files and the number on top of this state; False if the state has moved on.

        `by_name`: columns are to be found by name in files that do not have their numbers.
        Under an order, what is there goes in the same step, and the table becomes another.
        """
        errors = iceberg("exceptions")
        try:
            change = self._transaction(identifier, files, location, by_name, order)
            change.commit_transaction()
        except (errors.CommitFailedException, errors.ValidationException):
            return False
        except ValueError:
            if self._is_replaced():
                return False
            raise
        except troubles() as error:
            # The library removes nothing it has written then: the table may name it.
            raise OutcomeUnknown(
                f"Iceberg cannot tell whether commit {identifier.number} to {'.'.join(self.name)}"
                f" was made: {error}. It looks again.",
                code="sink.commit_unknown",
            ) from error
        return True

    def snapshot_of(self, user: str, number: int) -> int | None:
        """Return the snapshot of this user's last commit up to a number, if it is still there."""
        found = [
            (int(s.summary.additional_properties[NUMBER]), s.snapshot_id)
            for s in self._metadata.snapshots
            if s.summary and s.summary.additional_properties.get(USER) == user
        ]
        return max((f for f in found if f[0] <= number), default=(0, None))[1]

    def tagged(self, tag: str) -> tuple[int, str] | None:
        """Return the snapshot that has a tag, and the user who committed it; None for no tag."""
        ref = self._metadata.refs.get(tag)
        if ref is None:
            return None
        there = self._metadata.snapshot_by_id(ref.snapshot_id)
        facts = there.summary.additional_properties if there and there.summary else {}
        return ref.snapshot_id, facts.get(USER, "")

    def tag(self, snapshot: int, tag: str) -> bool:
        """Give a snapshot a tag, on top of this state; False if the state has moved on."""
        errors = iceberg("exceptions")
        change = change_of(self._table)
        try:
            iceberg("table.update.snapshot").ManageSnapshots(change).create_tag(
                snapshot, tag
            ).commit()
            change.commit_transaction()
        except (errors.CommitFailedException, errors.ValidationException):
            return False
        except troubles() as error:
            raise Unavailable(
                f"Iceberg cannot tag {'.'.join(self.name)} with {tag}: {error}.",
                code="sink.tag_failed",
            ) from error
        return True

    def _transaction(
        self, identifier: CommitId, files: Sequence[IcebergFile], location: str, by_name: bool,
        order: TableOrder | None,
    ) -> "Transaction":  # fmt: skip
        facts = {USER: identifier.user, NUMBER: str(identifier.number)}
        if identifier.watermark is not None:
            facts[WATERMARK] = str(identifier.watermark)
        change = change_of(self._table)
        if order and order.mode != "empty" and not self.is_empty:
            change.delete(iceberg("expressions").AlwaysTrue())
        if order and order.shape:
            remake(change, order.shape)
        append = append_to(change, self._table.io, facts)
        for file in files:
            append.append_data_file(self._described(file, location, change.table_metadata))
        append.commit()
        said = {COMMITTED + identifier.user: str(identifier.number)}
        if order:
            said[COMMITTED + order.mark] = "0"
        mapped = NAME_MAPPING in self.properties
        if (by_name and not mapped) or (mapped and order and order.shape):
            said[NAME_MAPPING] = change.table_metadata.schema().name_mapping.model_dump_json()
        change.set_properties(said)
        old = self._old_snapshots()
        if old:
            iceberg("table.update.snapshot").ExpireSnapshots(change).by_ids(old).commit()
        return change

    def _described(self, file: IcebergFile, location: str, metadata: "TableMetadata") -> "DataFile":
        try:
            return data_file(file, location, metadata)
        except (ValueError, TypeError, LookupError, OverflowError, struct.error) as error:
            raise UserError(
                f"Iceberg refuses what was staged for {'.'.join(self.name)}: what is said of the"
                f" file {file.final} is not of this table ({error}). Look at the worker that ran"
                " the task.",
                code="sink.committable_refused",
            ) from error

    def _old_snapshots(self) -> list[int]:
        """Return the snapshots of ours that are not needed any more."""
        kept = max(1, int(self.properties.get(KEPT, KEPT_DEFAULT)))
        named = {ref.snapshot_id for ref in self._metadata.refs.values()}
        ours = [
            s.snapshot_id
            for s in self._metadata.snapshots
            if s.summary and USER in s.summary.additional_properties
        ]
        return [number for number in ours[:-kept] if number not in named]

    def _is_replaced(self) -> bool:
        fresh = self.load(self._catalog, self.name, self._s3)
        return fresh is None or fresh._metadata.table_uuid != self._metadata.table_uuid

    @property
    def _metadata(self) -> "TableMetadata":
        return self._table.metadata
