"""Iceberg's Hadoop catalog on a disk of this machine: nothing but folders.

The table `a.b` is in `<warehouse>/a/b`; its states are `metadata/v<N>.metadata.json`, and the
highest N is the table.  A commit writes the next state next to them and then gives it its number
with a hard link, which only one of many can create.  There is no lock: a committer that stops,
wherever it is, blocks no other.  `version-hint.text` names the highest N to other readers.

A catalog to the library is whatever has these methods; it is not derived from the library's own,
so that this module can be loaded without it.
"""

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.connectors.iceberg.library import iceberg
from holdfast.connectors.lake.location import Location

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

STATE = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")
NAMES = ("v{}.metadata.json", "v{}.gz.metadata.json")
HINT = "version-hint.text"

RETIRE = "write.metadata.delete-after-commit.enabled"
KEEP = "write.metadata.previous-versions-max"
KEEP_DEFAULT = 100

Identifier = tuple[str, ...]


class HadoopCatalog:
    """The tables below one folder.  Without `hints`, reading a table corrects no hint."""

    def __init__(
        self, name: str, warehouse: Location, properties: Mapping[str, str], *, hints: bool = True
    ) -> None:
        self.name = name
        self._hints = hints
        self._root = Path(warehouse.path)
        self._properties = dict(properties)

    def folder(self, identifier: Identifier) -> Path:
        """Return where a table is, or would be."""
        return self._root.joinpath(*identifier)

    def create_namespace_if_not_exists(self, namespace: Identifier) -> None:
        """Make the folder of a namespace."""
        self._root.joinpath(*namespace).mkdir(parents=True, exist_ok=True)

    def load_table(self, identifier: Identifier) -> "Table":
        """Return the latest state; raise NoSuchTableError if there is none."""
        folder, read = self.folder(identifier), iceberg("serializers").FromInputFile
        while True:
            number = _latest(folder)
            if not number:
                raise iceberg("exceptions").NoSuchTableError(f"there is no table in {folder}")
            location = f"file://{_state(folder, number)}"
            io = self._files(location)
            try:
                metadata = read.table_metadata(io.new_input(location))
            except FileNotFoundError:
                continue  # there were many commits since we looked, and this state was retired
            if self._hints:
                _hint(folder, number)  # a committer may have died before it did
            return self._table(identifier, metadata, location)

    def create_table(
        self, identifier: Identifier, schema: "Schema", *, partition_spec: "PartitionSpec",
        properties: dict[str, str],
    ) -> "Table":  # fmt: skip
        """Make a new table; raise TableAlreadyExistsError if there is one."""
        errors = iceberg("exceptions")
        folder = self.folder(identifier)
        metadata = _fresh(folder, schema, partition_spec, properties)
        try:
            if _latest(folder):
                raise errors.CommitFailedException(f"there is a table in {folder}")
            location = _publish(folder, 1, metadata)
        except (errors.CommitFailedException, errors.CommitStateUnknownException) as error:
            raise errors.TableAlreadyExistsError(f"there is a table in {folder}") from error
        return self._table(identifier, metadata, location)

    def commit_table(
        self,
        table: "Table",
        requirements: tuple["TableRequirement", ...],
        updates: tuple["TableUpdate", ...],
    ) -> "CommitTableResponse":
        """Make the next state of a table, if what is required is so in the latest."""
        folder = self.folder(table.name())
        if _number(table.metadata_location) != _latest(folder):
            table = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = iceberg("table.update").update_table_metadata(
            table.metadata, updates, metadata_location=table.metadata_location
        )
        number = _number(table.metadata_location) + 1
        location = _publish(folder, number, metadata)
        if metadata.properties.get(RETIRE, "false").lower() == "true":
            _retire(folder, number - 1 - max(1, int(metadata.properties.get(KEEP, KEEP_DEFAULT))))
        said = {"metadata": metadata, "metadata-location": location}
        made: CommitTableResponse = iceberg("table").CommitTableResponse(**said)
        return made

    def supports_server_side_planning(self) -> bool:
        """Say that there is no server; the library asks before it reads."""
        return False

    def _delete_old_metadata(
        self, io: "FileIO", base: "TableMetadata", metadata: "TableMetadata"
    ) -> None:
        """Do nothing: `commit_table` has.  Called by the library after a commit."""

    def _files(self, location: str) -> "FileIO":
        # The library's first choice imports pandas, which takes a second, and nothing needs it.
        chosen = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", **self._properties}
        made: FileIO = iceberg("io").load_file_io(chosen, location)
        return made

    def _table(self, identifier: Identifier, metadata: "TableMetadata", location: str) -> "Table":
        made: Table = iceberg("table").Table(
            identifier, metadata, location, self._files(location), self
        )
        return made


def _fresh(
    folder: Path, schema: "Schema", spec: "PartitionSpec", properties: dict[str, str]
) -> "TableMetadata":
    unsorted = iceberg("table.sorting").UNSORTED_SORT_ORDER
    made: TableMetadata = iceberg("table.metadata").new_table_metadata(
        schema, spec, unsorted, f"file://{folder}", properties
    )
    return made


def _publish(folder: Path, number: int, metadata: "TableMetadata") -> str:
    """Make a state the table's `number`-th; raise CommitFailedException if there is one."""
    errors = iceberg("exceptions")
    target = folder / "metadata" / NAMES[0].format(number)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{uuid.uuid4()}.metadata.json")
    try:
        beside.write_text(metadata.model_dump_json(exclude_none=True))
        try:
            os.link(beside, target)
        except FileExistsError as error:
            raise errors.CommitFailedException(f"{target} is there already") from error
    finally:
        beside.unlink(missing_ok=True)
    # States are retired in their order.  If the one before is gone, then so many came since we
    # looked that this one is due, too: it counted, or it had been retired and we wrote it again.
    if number > 1 and not _state(folder, number - 1).exists():
        target.unlink(missing_ok=True)
        raise errors.CommitStateUnknownException(f"many were faster than {target}")
    _hint(folder, number)
    return f"file://{target}"


def _hint(folder: Path, number: int) -> None:
    """Tell other readers which state is the latest."""
    hint = folder / "metadata" / HINT
    while _hinted(folder) != (number := max(number, _latest(folder))):
        beside = hint.with_name(f"{uuid.uuid4()}.metadata.json")
        beside.write_text(str(number))
        beside.replace(hint)
        # And look again: one that was held up here has put a number that is too low.


def _retire(folder: Path, last: int) -> None:
    """Remove states up to the `last`, the oldest first."""
    first = last
    while first > 1 and _state(folder, first - 1).exists():
        first -= 1
    for number in range(first, last + 1):
        _state(folder, number).unlink(missing_ok=True)


def _latest(folder: Path) -> int:
    """Return the number of the latest state; 0 if there is none.

    Folders grow with each commit, so they are listed only where the hint leads nowhere.
    """
    number = _hinted(folder)
    if not number or not _state(folder, number).exists():
        number = max(_listed(folder), default=0)
    while _state(folder, number + 1).exists():
        number += 1
    return number


def _hinted(folder: Path) -> int:
    try:
        said = (folder / "metadata" / HINT).read_text().strip()
    except FileNotFoundError:
        return 0
    return int(said) if said.isdecimal() else 0


def _listed(folder: Path) -> Iterator[int]:
    try:
        names = [path.name for path in (folder / "metadata").iterdir()]
    except FileNotFoundError:
        return
    for name in names:
        found = STATE.fullmatch(name)
        if found:
            yield int(found[1])


def _state(folder: Path, number: int) -> Path:
    """Return the file of a state, whether it is there or not."""
    plain, packed = (folder / "metadata" / name.format(number) for name in NAMES)
    return packed if packed.exists() else plain


def _number(location: str) -> int:
    found = STATE.fullmatch(location.rpartition("/")[2])
    assert found, f"{location} is not a state of a Hadoop table"
    return int(found[1])
