"""What a job file may say to the Iceberg sink."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from holdfast.connect.options import option, options
from holdfast.connectors.iceberg.table_properties import CODEC, CODECS, FORMAT, refused_wishes
from holdfast.connectors.lake.location import S3_OPTIONS, S3_SCHEMES, place_problem, same_place
from holdfast.connectors.lake.mark_options import MarkDoneOptions
from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode
from holdfast.model.tree import Plain

CATALOGS = ("hadoop", "rest", "hive", "glue", "sql")

S3_PROPERTIES = {
    # Hadoop's setting: the library's
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
    "fs.s3a.endpoint": "s3.endpoint",
    "fs.s3a.endpoint.region": "s3.region",
}


def _where(catalog: Mapping[str, str]) -> Plain:
    """Return the settings of a catalog that say which one it is."""
    given = {key: catalog[key] for key in ("type", "uri", "warehouse") if key in catalog}
    return {key: said if key == "type" else same_place(said) for key, said in given.items()}


@options
class IcebergSinkOptions(MarkDoneOptions):
    """Options of the Iceberg sink."""

    #: What to call the catalog.  A catalog of type `sql` keeps its tables under this name.
    catalog_name: str = option("default", identity=True)
    #: The namespace of the table; may hold `${database_name}` and its like.
    namespace: str = option("default", identity=True)
    #: The table; may hold `${table_name}` and its like.
    table: str = option("${table_name}", identity=True)
    #: Which catalog: `type` is `hadoop`, `rest`, `hive`, `glue` or `sql`; `warehouse`, `uri` and
    #: others as that catalog asks.  See below.
    catalog: dict[str, str] = option(key="iceberg.catalog.config", identity=_where)
    #: Hadoop's settings of S3, such as `fs.s3a.endpoint`.
    hadoop: dict[str, str] = option({}, key="hadoop.config")
    #: Refused: there is no Hadoop to read it; give `hadoop.config`.
    hadoop_conf_path: str | None = option(None, key="iceberg.hadoop-conf-path")
    #: Whether columns of rows and table must agree in upper and lower case, too.
    case_sensitive: bool = False
    #: How files are written: `write.parquet.compression-codec`.  Their size is Spark's affair.
    write_props: dict[str, str] = option({}, key="iceberg.table.write-props")
    #: Properties of a new table.
    create_props: dict[str, str] = option({}, key="iceberg.table.auto-create-props")
    #: Refused if true: a table is not changed while rows are written to it.
    schema_evolution: bool = option(False, key="iceberg.table.schema-evolution-enabled")
    #: The identifier columns of a new table, with commas between.  They only describe the table:
    #: rows are always added.  Keys of the source are not taken over.
    primary_keys: str = option("", key="iceberg.table.primary-keys")
    #: Partition a new table by the values of these columns, with commas between; a table that is
    #: there keeps its own.
    partition_keys: str = option("", key="iceberg.table.partition-keys")
    #: Refused if true: rows are added, never replaced.
    upsert: bool = option(False, key="iceberg.table.upsert-mode-enabled")
    #: What the job's first commit does to a table that is there; readers see the old until then.
    schema_save_mode: SchemaSaveMode = SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST
    #: What the job's first commit does to rows that are in the table; they are shown until then.
    data_save_mode: DataSaveMode = DataSaveMode.APPEND_DATA
    #: Only `main`: commits go to the table's main branch.
    commit_branch: str = option("main", key="iceberg.table.commit-branch")
    #: Whether the snapshot of a savepoint gets a tag, which keeps it:
    #: `savepoint-<job>-<incarnation>-<pipeline>-<checkpoint>`.
    savepoint_tag: bool = option(False, key="sink.savepoint.auto-tag")

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell: (option, sentence)."""
        yield from self.mark_problems()
        yield from self._refused()
        yield from self._catalog_problems()
        for name in ("write_props", "create_props"):
            given = getattr(self, name)
            if given.get(FORMAT, "parquet").lower() != "parquet":
                yield name, f"{FORMAT}: this sink writes Parquet, not {given[FORMAT]}."
                continue
            code = [key for key in given if ".py-" in key]
            if code:
                yield name, f"{code[0]} names code to run, and is refused."
                continue
            for wish in refused_wishes(given):
                yield name, f"this sink does not do {wish}."
            codec = given.get(CODEC, "zstd").lower()
            if codec not in CODECS:
                yield name, f"{CODEC} must be one of {', '.join(CODECS)}, not '{codec}'."
        if self.create_props.get("format-version", "2") not in ("1", "2"):
            yield "create_props", "format-version must be 1 or 2."

    def _refused(self) -> Iterator[tuple[str, str]]:
        if self.upsert:
            yield (
                "upsert",
                "iceberg.table.upsert-mode-enabled = true is not possible: this sink adds rows,"
                " and replaces or deletes none. Leave it out, or write to a sink with primary keys,"
                " such as Paimon or Jdbc.",
            )
        if self.schema_evolution:
            yield (
                "schema_evolution",
                "iceberg.table.schema-evolution-enabled = true is not possible: this sink does not"
                " change a table that is there. Change the table, then start the job.",
            )
        if self.commit_branch != "main":
            yield "commit_branch", "iceberg.table.commit-branch: only 'main' is possible."
        if self.hadoop_conf_path is not None:
            yield (
                "hadoop_conf_path",
                "iceberg.hadoop-conf-path is not read: there is no Hadoop here."
                " Give what is needed of it in hadoop.config.",
            )

    def _catalog_problems(self) -> Iterator[tuple[str, str]]:
        kind = self.catalog_type
        code = [key for key in self.catalog if key.startswith("py-")]
        if code:
            yield "catalog", f"iceberg.catalog.config: {code[0]} names code to run, and is refused."
        elif "catalog-impl" in self.catalog:
            yield (
                "catalog",
                "iceberg.catalog.config: catalog-impl names a class of Java, and there is none"
                f" here. Give type = {', '.join(CATALOGS[:-1])} or {CATALOGS[-1]}.",
            )
        elif kind not in CATALOGS:
            yield (
                "catalog",
                f"iceberg.catalog.config: type must be {', '.join(CATALOGS[:-1])} or"
                f" {CATALOGS[-1]}, not '{self.catalog.get('type', '')}'.",
            )
        elif kind == "hadoop":
            yield from self._warehouse_problems()
        elif kind != "glue" and not self.catalog.get("uri"):
            yield "catalog", f"iceberg.catalog.config: a {kind} catalog needs 'uri'."

    def _warehouse_problems(self) -> Iterator[tuple[str, str]]:
        warehouse = self.warehouse
        if not warehouse:
            yield "catalog", "iceberg.catalog.config: a hadoop catalog needs 'warehouse'."
        elif urlsplit(warehouse).scheme not in ("", "file"):
            yield (
                "catalog",
                f"iceberg.catalog.config: a hadoop catalog on '{warehouse}' cannot tell two commits"
                " at the same moment apart, and would lose one. Use a catalog of type rest, hive,"
                " glue or sql; hadoop is for folders of this machine.",
            )
        else:
            problem = place_problem(warehouse)
            if problem:
                yield "catalog", f"iceberg.catalog.config: warehouse: {problem}"

    @property
    def catalog_type(self) -> str:
        """The type of the catalog, in small letters; guessed from `uri` where it is not given."""
        given = self.catalog.get("type", "").lower()
        if given:
            return given
        scheme = urlsplit(self.catalog.get("uri", "")).scheme
        return {"http": "rest", "https": "rest", "thrift": "hive", "sqlite": "sql"}.get(scheme, "")

    @property
    def warehouse(self) -> str:
        """Where the catalog has its tables, as far as the job file says it."""
        return self.catalog.get("warehouse", "")

    @property
    def identifier(self) -> tuple[str, ...]:
        """The namespace, piece by piece, and the table."""
        return (*self.namespace.split("."), self.table)

    @property
    def named(self) -> str:
        """The table as messages name it."""
        return ".".join(self.identifier)

    @property
    def partitions(self) -> list[str]:
        """The columns to partition a new table by."""
        return _pieces(self.partition_keys)

    @property
    def identifiers(self) -> list[str]:
        """The identifier columns of a new table."""
        return _pieces(self.primary_keys)

    @property
    def s3(self) -> dict[str, str]:
        """Hadoop's settings of S3, all of them."""
        known = {k: self.catalog[v] for k, v in S3_PROPERTIES.items() if v in self.catalog}
        return known | {k: v for k, v in self.hadoop.items() if k in S3_OPTIONS}

    @property
    def properties(self) -> dict[str, str]:
        """The catalog's settings as the library takes them."""
        given = {k: v for k, v in self.catalog.items() if k not in ("type", "io-impl")}
        s3 = {S3_PROPERTIES[k]: v for k, v in self.s3.items()}
        return {"type": self.catalog_type, **s3, **given}

    @property
    def is_s3(self) -> bool:
        """Whether the warehouse is on S3, as far as one can tell."""
        return urlsplit(self.warehouse).scheme in S3_SCHEMES


def _pieces(text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",") if piece.strip()]
