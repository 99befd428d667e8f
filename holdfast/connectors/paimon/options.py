"""What a job file may say to the Paimon sink."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import describe, option, options, read_options
from holdfast.connectors.lake.location import Location as TablePlace
from holdfast.connectors.lake.location import place_problem, same_place
from holdfast.connectors.lake.mark_options import MarkDoneOptions
from holdfast.connectors.paimon.refusals import option_refusals
from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode
from holdfast.errors import SourceLocation
from holdfast.model.tree import Block, Entry, Scalar

SAVEPOINT_TAG = "sink.savepoint.auto-tag"
HTTP_URL = "partition.mark-done-action.http.url"


@options
class PaimonSinkOptions(MarkDoneOptions):
    """Options of the Paimon sink."""

    #: The folder of all tables: a table is in `<warehouse>/<database>.db/<table>`.
    warehouse: str = option(identity=same_place)
    #: The database; may hold `${database_name}` and its like.
    database: str = option(identity=True)
    #: The table; may hold `${table_name}` and its like.
    table: str = option(identity=True)
    #: Only `filesystem`: tables are found in folders of the warehouse.
    catalog_type: str = "filesystem"
    #: Refused: only catalogs that are refused have one.
    catalog_uri: str | None = None
    #: What the job's first commit does to a table that is there; readers see the old until then.
    schema_save_mode: SchemaSaveMode = SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST
    #: What the job's first commit does to rows that are in the table; they are shown until then.
    data_save_mode: DataSaveMode = DataSaveMode.APPEND_DATA
    #: The primary key of a new table, with commas between.  Keys of the source are not taken over.
    primary_keys: str = option("", key="paimon.table.primary-keys")
    #: Partition a new table by these columns, with commas between; a table that is there keeps
    #: its own.
    partition_keys: str = option("", key="paimon.table.partition-keys")
    #: Options of a new table, such as `bucket`, `sequence.field` or `snapshot.time-retained`.
    write_props: dict[str, str] = option({}, key="paimon.table.write-props")
    #: Whether the snapshot of a savepoint gets a tag, which keeps it:
    #: `savepoint-<job>-<incarnation>-<pipeline>-<checkpoint>`.
    savepoint_tag: bool = option(False, key=SAVEPOINT_TAG)
    #: Refused: there is no Hadoop to read it.
    hdfs_site_path: str | None = None
    #: Refused: there is no Hadoop to use it.
    hadoop: dict[str, str] = option({}, key="paimon.hadoop.conf")
    #: Refused: there is no Hadoop to read it.
    hadoop_conf_path: str | None = option(None, key="paimon.hadoop.conf-path")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell: (option, sentence)."""
        kind = self.catalog_type.lower()
        if kind != "filesystem" or self.catalog_uri:
            said = "catalog_type" if kind != "filesystem" else "catalog_uri"
            yield (
                said,
                f"catalog_type must be filesystem, not '{self.catalog_type}': this sink does not"
                " speak to a metastore. Tables in a warehouse folder are read by every engine all"
                " the same."
                if kind != "filesystem"
                else "catalog_uri belongs to a catalog that this sink does not speak to."
                " Leave it out.",
            )
        for name in ("hdfs_site_path", "hadoop", "hadoop_conf_path"):
            if getattr(self, name):
                yield name, "there is no Hadoop here. Leave it out."
        yield from self._warehouse_problems()
        yield from self.mark_problems()
        for sentence in marks_in(self.write_props)[1]:
            yield "write_props", f"paimon.table.write-props: {sentence}"
        for sentence in option_refusals(self.write_props, self.keys, self.partitions):
            yield "write_props", f"paimon.table.write-props: {sentence}"

    def _warehouse_problems(self) -> Iterator[tuple[str, str]]:
        problem = place_problem(self.warehouse)
        if urlsplit(self.warehouse).scheme not in ("", "file"):
            yield (
                "warehouse",
                f"warehouse: on '{self.warehouse}' two commits at the same moment cannot be kept"
                " apart without a catalog, and one would be lost. Give a folder on a disk that"
                " masters and workers share.",
            )
        elif problem:
            yield "warehouse", f"warehouse: {problem}"

    @property
    def url(self) -> str:
        """Where the table is, as a job file says it."""
        return f"{self.warehouse.rstrip('/')}/{self.database}.db/{self.table}"

    @property
    def place(self) -> TablePlace:
        """Where the table is."""
        return TablePlace(self.url)

    @property
    def marks(self) -> MarkDoneOptions:
        """What marks partitions as done, said here or in `paimon.table.write-props`."""
        said = marks_in(self.write_props)[0] if self.mark_done is None else None
        return said or self

    @property
    def tags_savepoints(self) -> bool:
        """Whether the snapshot of a savepoint gets a tag, said here or in the write-props."""
        return self.savepoint_tag or self.write_props.get(SAVEPOINT_TAG, "").lower() == "true"

    @property
    def partitions(self) -> list[str]:
        """The columns to partition a new table by."""
        return _pieces(self.partition_keys)

    @property
    def keys(self) -> list[str]:
        """The primary key of a new table."""
        return _pieces(self.primary_keys)


def marks_in(props: Mapping[str, str]) -> tuple[MarkDoneOptions | None, list[str]]:
    """Return what options of a table say about marking partitions, and what is wrong with it."""
    known = {info.key for info in describe(MarkDoneOptions)}
    nowhere, report = SourceLocation("", 0, 0), CheckReport()
    entries = tuple(
        Entry(key, Scalar(text, text, nowhere), nowhere)
        for key, text in props.items()
        if key in known
    )
    made = read_options(MarkDoneOptions, Block(entries, nowhere), "marks", report)
    wrong = [mistake.message.removeprefix("marks: ") for mistake in report.mistakes]
    if HTTP_URL in props:
        wrong.append(f"{HTTP_URL} may hold a secret: give it next to this, not in it.")
    if made is not None:
        wrong += [sentence for _, sentence in made.mark_problems()]
    return made, wrong


def _pieces(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",") if piece.strip()]
