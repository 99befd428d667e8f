"""What a job file may say to the Delta sink."""

from collections.abc import Iterator

from holdfast.connect.options import option, options
from holdfast.connectors.lake.location import Location, place_problem, same_place
from holdfast.connectors.lake.mark_options import MarkDoneOptions
from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode
from holdfast.model.secret import Secret


@options
class DeltaSinkOptions(MarkDoneOptions):
    """Options of the Delta sink."""

    #: The folder of the table; may hold `${table_name}` and its like.  Or give `warehouse`.
    path: str | None = option(None, identity=same_place)
    #: The folder of all tables: a table is in `<warehouse>/<database>.db/<table>`.
    warehouse: str | None = option(None, identity=same_place)
    #: The database, in a warehouse.
    database: str = option("${database_name:default}", identity=True)
    #: The table, in a warehouse.
    table: str = option("${table_name}", identity=True)
    #: What the job's first commit does to a table that is there; readers see the old until then.
    schema_save_mode: SchemaSaveMode = SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST
    #: What the job's first commit does to rows that are in the table; they are shown until then.
    data_save_mode: DataSaveMode = DataSaveMode.APPEND_DATA
    #: Partition a new table by these columns; a table that is there keeps its own.
    partition_keys: list[str] = option([], aliases=("partition_by",))
    #: Properties of a new table, such as `delta.appendOnly`.
    table_properties: dict[str, str] = option({}, key="delta.table.write-props")
    #: The most rows of one file; 0 for no limit.
    rows_per_file: int = option(0, at_least=0)
    #: The key of an S3 account.  Without it, the environment says.
    access_key: str | None = None
    #: The secret of an S3 account.
    access_secret: Secret | None = option(None, aliases=("secret_key",))
    #: Hadoop's settings of S3, such as `fs.s3a.endpoint`.
    hadoop_s3_properties: dict[str, str] = option({})

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell: (option, sentence)."""
        yield from self.mark_problems()
        if (self.path is None) == (self.warehouse is None):
            yield "path", "give either 'path' or 'warehouse'."
            return
        name = "path" if self.path is not None else "warehouse"
        problem = place_problem(self.url)
        if problem:
            yield name, f"{name}: {problem}"

    @property
    def url(self) -> str:
        """Where the table is, as a job file says it."""
        if self.path is not None:
            return self.path
        return f"{(self.warehouse or '').rstrip('/')}/{self.database}.db/{self.table}"

    @property
    def place(self) -> Location:
        """Where the table is."""
        return Location(self.url, self.s3)

    @property
    def s3(self) -> dict[str, str]:
        """Hadoop's settings of S3, all of them."""
        given = dict(self.hadoop_s3_properties)
        if self.access_key:
            given["fs.s3a.access.key"] = self.access_key
        if self.access_secret:
            given["fs.s3a.secret.key"] = self.access_secret.reveal()
        return given
