"""What a job file may say to the LocalFile sink."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from holdfast.connect.options import option, options
from holdfast.connectors.files.discovery import local_path
from holdfast.connectors.files.format import (
    CODEC_ENDINGS,
    ENDINGS,
    LINES,
    SPARK_CODECS,
    Codec,
    FileFormat,
    is_utf8,
    python_encoding,
)
from holdfast.connectors.files.names import TRANSACTION, UUID, java_time
from holdfast.connectors.files.source_options import TEXT_DELIMITER
from holdfast.connectors.lake.mark_options import MarkDoneOptions
from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode
from holdfast.model.tree import Plain

DIR_EXPRESSION = "${k0}=${v0}/${k1}=${v1}/.../${kn}=${vn}/"


@options
class LocalFileSinkOptions(MarkDoneOptions):
    """Options of the LocalFile sink."""

    #: The folder finished files appear in; may hold `${table_name}` and its like.
    path: str = option(identity=local_path)
    #: Ignored: files are written out of sight inside `path`, so that they need not be copied.
    tmp_path: str = "/tmp/seatunnel"
    file_format_type: FileFormat = FileFormat.CSV  #: What the files hold.
    custom_filename: bool = False  #: Whether you name the files; `file_name_expression` does.
    #: The names of files; may hold `${transactionId}`, `${now}` and `${uuid}`.
    file_name_expression: str = TRANSACTION
    filename_time_format: str = "yyyy.MM.dd"  #: How `${now}` is written, as a Java pattern.
    filename_extension: str | None = None  #: How file names end, instead of `.csv` and its like.
    #: The text between two fields of a line: `\001` for text and `,` for csv by default.
    field_delimiter: str | None = option(None, aliases=("delimiter",))
    row_delimiter: str = "\n"  #: What ends a line.
    have_partition: bool = False  #: Whether files are put into folders; `partition_by` decides.
    partition_by: list[str] | None = None  #: Put rows into folders by these columns.
    partition_dir_expression: str = DIR_EXPRESSION  #: The folder of each partition, in `path`.
    #: Whether the columns of `partition_by` are also written into the files.
    is_partition_field_write_in_file: bool = False
    sink_columns: list[str] | None = None  #: The columns to write; all of them by default.
    #: Whether `${transactionId}` must be in every file name.  Rows appear whole either way.
    is_enable_transaction: bool = True
    batch_size: int = option(1_000_000, at_least=1)  #: The most rows one file may have.
    compress_codec: Codec | None = None  #: How files are compressed; snappy for parquet and orc.
    single_file_mode: bool = False  #: Write all rows of a slice into one file.
    create_empty_file_when_no_data: bool = False  #: Write an empty file where there are no rows.
    enable_header_write: bool = False  #: Write column names as the first line of text and csv.
    #: When csv text is quoted: where it must be, always, or never.
    csv_string_quote_mode: Literal["MINIMAL", "ALL", "NONE"] = "MINIMAL"
    encoding: str = "UTF-8"  #: The character encoding of text, csv, json and xml files.
    date_format: str = "yyyy-MM-dd"  #: How dates are written, as a Java pattern.
    #: How timestamps are written, as a Java pattern.
    datetime_format: str = "yyyy-MM-dd HH:mm:ss"
    time_format: str = "HH:mm:ss"  #: How times of day are written, as a Java pattern.
    sheet_name: str = "Sheet1"  #: The name of the sheet in Excel files.
    #: The most rows of one sheet, its header included; the next sheet takes the rest.
    sheet_max_rows: int = option(1_048_576, at_least=2, at_most=1_048_576)
    max_rows_in_memory: int | None = None  #: Ignored: Excel rows are not held in memory.
    xml_root_tag: str = "RECORDS"  #: The outermost element of XML files.
    xml_row_tag: str = "RECORD"  #: The XML element that is a row.
    xml_use_attr_format: bool | None = None  #: Columns are attributes (true) or elements (false).
    #: Write timestamps as INT96, for old readers of Parquet.
    parquet_avro_write_timestamp_as_int96: bool = False
    parquet_avro_write_fixed_as_int96: list[str] | None = None  #: Not supported.
    #: What the job's first commit does to a folder that is there; readers see the old until then.
    schema_save_mode: SchemaSaveMode = SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST
    #: What the job's first commit does to files that are there; they are shown until then.
    data_save_mode: DataSaveMode = DataSaveMode.APPEND_DATA
    save_mode: Plain = None  #: Ignored: an old name, replaced by the two save modes.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell: (option, sentence)."""
        if local_path(self.path) == "/":
            yield "path", "path = '/' is the whole machine. Name a folder for this sink alone."
        yield from self.mark_problems()
        if self.mark_done is not None and not self.partition_by:
            yield "mark_done", "partition.mark-done-action marks partitions: give partition_by."
        yield from self._name_problems()
        yield from self._format_problems()
        yield from self._encoding_problems()

    def _name_problems(self) -> Iterator[tuple[str, str]]:
        if self.is_enable_transaction and TRANSACTION not in self.file_name_expression:
            yield (
                "file_name_expression",
                "file_name_expression must have ${transactionId} in it while"
                " is_enable_transaction is true.",
            )
        if "/" in self.file_name_expression:
            yield "file_name_expression", "file_name_expression may not have a '/' in it."
        try:
            java_time(self.filename_time_format, datetime.min)
        except ValueError as error:
            yield "filename_time_format", f"filename_time_format: {error}."

    def _format_problems(self) -> Iterator[tuple[str, str]]:
        kind, codecs = self.file_format_type, SPARK_CODECS.get(self.file_format_type, {})
        good = ", ".join(codecs) or "none"
        if self.codec is not Codec.NONE and self.codec not in codecs:
            yield (
                "compress_codec",
                f"compress_codec = {self.codec} cannot be written in {kind} files."
                f" Good values: {good}.",
            )
        if kind is FileFormat.XML and self.xml_use_attr_format is None:
            yield "xml_use_attr_format", "xml files need xml_use_attr_format: true or false."
        if kind is FileFormat.BINARY and self.create_empty_file_when_no_data:
            yield (
                "create_empty_file_when_no_data",
                "binary files are copies: none can be invented where there is no data.",
            )
        if kind is FileFormat.BINARY and self.partition_by:
            yield "partition_by", "binary files keep their own folders; remove partition_by."
        if self.parquet_avro_write_fixed_as_int96:
            yield (
                "parquet_avro_write_fixed_as_int96",
                "parquet_avro_write_fixed_as_int96 is not supported. Write the column as bytes.",
            )
        if (
            self.enable_header_write
            and kind is FileFormat.TEXT
            and self.codec not in (Codec.NONE, Codec.LZO, Codec.GZIP)
        ):
            yield "enable_header_write", "a header needs compress_codec none, lzo or gzip."

    def _encoding_problems(self) -> Iterator[tuple[str, str]]:
        name = python_encoding(self.encoding)
        if name is None:
            yield "encoding", f"encoding = '{self.encoding}' is not known. Try UTF-8 or GBK."
        elif self.file_format_type in LINES and not self._ends_lines(name):
            yield (
                "encoding",
                f"encoding = '{self.encoding}' cannot be written: the end of a line has other bytes"
                " in it than in UTF-8. Use UTF-8.",
            )

    def _ends_lines(self, encoding: str) -> bool:
        """Say whether an encoding has the end of a line as Spark writes it."""
        end = self.row_delimiter
        return end.encode(encoding, "replace") == end.encode() and "\n".encode(encoding) == b"\n"

    @property
    def root(self) -> str:
        """The folder finished files appear in, as an absolute path."""
        return local_path(self.path)

    @property
    def codec(self) -> Codec:
        """How files are compressed; none by default."""
        return self.compress_codec or Codec.NONE

    @property
    def spark_codec(self) -> str:
        """What Spark's writer calls the codec."""
        if self.compress_codec is None and self.file_format_type in (
            FileFormat.PARQUET,
            FileFormat.ORC,
        ):
            return "snappy"
        return SPARK_CODECS[self.file_format_type][self.codec]

    @property
    def delimiter(self) -> str:
        """The text between two fields of a line."""
        if self.field_delimiter is not None:
            return self.field_delimiter
        return "," if self.file_format_type is FileFormat.CSV else TEXT_DELIMITER

    @property
    def rows_max(self) -> int:
        """The most rows of a file; 0 for no limit."""
        return 0 if self.single_file_mode else self.batch_size

    @property
    def ending(self) -> str:
        """How file names end, codec first."""
        if self.filename_extension is not None:
            wanted = self.filename_extension
            last = wanted if wanted.startswith(".") or not wanted else f".{wanted}"
        else:
            last = ENDINGS[self.file_format_type][0]
        return CODEC_ENDINGS[self.codec] + last

    @property
    def unique(self) -> bool:
        """Whether the expression itself keeps names apart."""
        return TRANSACTION in self.file_name_expression or UUID in self.file_name_expression

    @property
    def plain_text(self) -> bool:
        """Whether Spark's writers can write the encoding."""
        return is_utf8(self.encoding)
