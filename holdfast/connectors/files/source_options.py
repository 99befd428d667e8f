"""What a job file may say to the LocalFile source."""

import re
from collections.abc import Iterator
from typing import Literal

from holdfast.connect.options import option, options
from holdfast.connect.rejects import OPTION as ROW_ERRORS
from holdfast.connect.rejects import RowErrors, row_error_problems
from holdfast.connect.schema import Schema
from holdfast.connectors.files.discovery import filter_pattern, local_path, parse_time
from holdfast.connectors.files.format import (
    COLUMNAR,
    LINES,
    READABLE,
    SKIPPING,
    Archive,
    Codec,
    FileFormat,
    python_encoding,
)
from holdfast.connectors.files.times import pattern_of
from holdfast.model.table import Table, TablePath
from holdfast.model.tree import Plain

CATALOG = "LocalFile"
DEFAULT_TABLE = "default.default.default"
TEXT_DELIMITER = "\x01"


@options
class FileTable:
    """Which files make up one table, and how to read them."""

    #: The file or folder to read; folders are read with all folders below them.
    path: str = option("", identity=local_path)
    #: What the files hold.
    file_format_type: FileFormat | None = option(None, aliases=("format",))
    #: The columns of the table.  Needed for json, excel and xml; text and csv without it give
    #: one column `content` with the whole line; parquet and orc files know their own columns.
    schema: Schema | None = None
    #: The columns to keep, in this order; all of them by default.
    read_columns: list[str] | None = None
    #: The text between two fields of a line: `\001` for text and `,` for csv by default.
    field_delimiter: str | None = option(None, aliases=("delimiter",))
    row_delimiter: str = "\n"  #: The text between two lines; also ends `\r` and `\r\n` if `\n`.
    #: Turn folders such as `day=2024-01-31` into text columns of the rows below them.
    parse_partition_from_path: bool = True
    read_partitions: list[str] | None = None  #: Read only files whose path has one of these in it.
    #: How dates are written, as a Java pattern; other common ways are understood too.
    date_format: str = "yyyy-MM-dd"
    #: How timestamps are written, as a Java pattern; other common ways are understood too.
    datetime_format: str = "yyyy-MM-dd HH:mm:ss"
    time_format: str = "HH:mm:ss"  #: How times of day are written, as a Java pattern.
    #: How many lines (or rows of a sheet) to leave out at the start of each file.
    skip_header_row_number: int = option(0, at_least=0)
    #: Take the columns of csv files in the order of their first line, by name.
    csv_use_header_line: bool = False
    #: The character that encloses fields: `"` for csv by default; fields of text files have none.
    quote_char: str | None = None
    #: The character that takes its meaning from the one behind it.  Two quotes in a quoted field
    #: are one quote with or without it.
    escape_char: str | None = None
    #: Whether rows of csv and text files must have just the fields of the table.  `false` leaves
    #: surplus fields out, and keeps text that follows a closing quote.  One empty field too many is
    #: always accepted.
    strict_mode: bool = True
    null_padding: bool = False  #: Read missing fields at the end of csv and text rows as null.
    #: How many bytes a row of a csv or text file may have: a quote that is never closed takes in
    #: the rows behind it.
    max_line_size: int = option(64 << 20, at_least=1)
    null_format: str | None = None  #: The text that means null.
    #: What to do with a row that does not fit: too few or too many fields, a value that is none of
    #: its type, bytes that are no text.  FAIL ends the job and says where the row is; SKIP leaves
    #: it out and counts it as rejected.
    row_error_handle_way: RowErrors = RowErrors.FAIL
    encoding: str = "UTF-8"  #: The character encoding of text, csv, json and xml files.
    sheet_name: str | None = None  #: The sheet of an Excel file to read; the first one by default.
    #: Makes no difference: with which library SeaTunnel reads Excel files.
    excel_engine: Literal["POI", "EASY_EXCEL", "EasyExcel"] = "POI"
    xml_row_tag: str | None = None  #: The XML element that is a row.
    xml_use_attr_format: bool | None = None  #: Columns are attributes (true) or elements (false).
    #: Read only files whose name or path matches this regular expression as a whole.
    file_filter_pattern: str | None = None
    filename_extension: str | None = None  #: Read only files whose name ends with this.
    #: Read only files changed at or after this time (`yyyy-MM-dd HH:mm:ss`).
    file_filter_modified_start: str | None = None
    #: Read only files changed before this time (`yyyy-MM-dd HH:mm:ss`).
    file_filter_modified_end: str | None = None
    compress_codec: Codec = Codec.NONE  #: How the files are compressed, whatever their names say.
    #: What kind of archive the files are in; every file of the format inside is read.
    archive_compress_codec: Archive = Archive.NONE
    binary_chunk_size: int = option(1024, at_least=1)  #: How many bytes of a binary file are a row.
    binary_complete_file_mode: bool = False  #: Read each binary file as one row.

    partition_dir_expression: Plain = None  #: Belongs to the sink; ignored here.
    is_partition_field_write_in_file: Plain = None  #: Belongs to the sink; ignored here.
    file_name_expression: Plain = None  #: Belongs to the sink; ignored here.
    filename_time_format: Plain = None  #: Belongs to the sink; ignored here.
    is_enable_transaction: Plain = None  #: Belongs to the sink; ignored here.
    partition_by: Plain = None  #: Belongs to the sink; ignored here.
    have_partition: Plain = None  #: Belongs to the sink; ignored here.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell: (option, sentence)."""
        if not self.path:
            yield "path", "required option 'path' is missing: name a file or folder to read."
        if not self.file_format_type:
            good = ", ".join(FileFormat)
            yield "file_format_type", f"required option 'file_format_type' is missing: {good}."
            return
        yield from self._schema_problems()
        yield from self._reader_problems()
        yield from self._row_error_problems()
        yield from self._filter_problems()

    def _schema_problems(self) -> Iterator[tuple[str, str]]:
        if self.format in (FileFormat.JSON, FileFormat.EXCEL, FileFormat.XML) and not self.declared:
            yield "schema", f"{self.format} files do not tell their columns: give schema.fields."
        columns = self.schema.table.names if self.schema else ()
        if self.read_columns and self.format in LINES and not columns:
            yield "read_columns", f"read_columns of {self.format} files needs schema.fields."
        for name in self.read_columns or ():
            if columns and name not in columns:
                known = ", ".join(columns)
                yield "read_columns", f"read_columns: no column '{name}'. Columns: {known}."
        if self.csv_use_header_line and not (self.format is FileFormat.CSV and self.declared):
            yield (
                "csv_use_header_line",
                "csv_use_header_line needs csv files and schema.fields.",
            )

    def _reader_problems(self) -> Iterator[tuple[str, str]]:
        if python_encoding(self.encoding) is None:
            yield "encoding", f"encoding = '{self.encoding}' is not known. Try UTF-8 or GBK."
        if self.format is FileFormat.XML and not self.xml_row_tag:
            yield "xml_row_tag", "xml files need xml_row_tag: the element that is a row."
        if self.format is FileFormat.XML and self.xml_use_attr_format is None:
            yield "xml_use_attr_format", "xml files need xml_use_attr_format: true or false."
        if self.compress_codec not in READABLE and self.format not in COLUMNAR:
            good = ", ".join(READABLE)
            yield (
                "compress_codec",
                f"compress_codec = {self.compress_codec} cannot be read in {self.format} files."
                f" Good values: {good}.",
            )
        if self.archive_compress_codec is not Archive.NONE and self.format in COLUMNAR:
            yield (
                "archive_compress_codec",
                f"{self.format} files cannot be read from inside an archive. Unpack it first.",
            )
        if self.format in (FileFormat.CSV, FileFormat.TEXT):
            yield from self._dialect_problems()

    def _dialect_problems(self) -> Iterator[tuple[str, str]]:
        for name in ("quote_char", "escape_char"):
            sign = getattr(self, name)
            if sign and (len(sign) != 1 or not " " < sign <= "~"):
                yield name, f"{name} must be a single ASCII character that can be seen."
            elif sign and (sign in self.delimiter or sign in self.row_delimiter):
                yield name, f"{name} = {sign} is part of the text between fields or lines."
        if not self.row_delimiter or not self.delimiter:
            yield "field_delimiter", "field_delimiter and row_delimiter must not be empty."
        elif self.delimiter in ("\r", "\n", "\0") or self.delimiter == self.row_delimiter:
            yield "field_delimiter", "field_delimiter must not be what ends a line, nor NUL."
        for name in ("date_format", "datetime_format", "time_format"):
            try:
                pattern_of(getattr(self, name))
            except ValueError as error:
                yield name, f"{name} = '{getattr(self, name)}' cannot be followed: {error}."

    def _row_error_problems(self) -> Iterator[tuple[str, str]]:
        yield from row_error_problems(self.row_error_handle_way)
        if self.row_error_handle_way is RowErrors.SKIP and self.format not in SKIPPING:
            good = ", ".join(SKIPPING)
            yield (
                ROW_ERRORS,
                f"{ROW_ERRORS} = SKIP leaves rows out of {good} files, not of {self.format} files."
                " Leave it away: such a file ends the job if it cannot be read.",
            )

    def _filter_problems(self) -> Iterator[tuple[str, str]]:
        if self.file_filter_pattern is not None:
            try:
                filter_pattern(self.file_filter_pattern)
            except re.error as error:
                yield "file_filter_pattern", f"file_filter_pattern is not a valid pattern: {error}."
        for name in ("file_filter_modified_start", "file_filter_modified_end"):
            text = getattr(self, name)
            if text and parse_time(text) is None:
                yield name, f"{name} = '{text}' is no time. Write it as 2024-01-31 16:00:00."

    @property
    def format(self) -> FileFormat:
        """The format, once `problems` has found none."""
        assert self.file_format_type is not None
        return self.file_format_type

    @property
    def declared(self) -> bool:
        """Whether the user says what the columns are."""
        return bool(self.schema and self.schema.table.columns)

    @property
    def delimiter(self) -> str:
        """The text between two fields of a line."""
        if self.field_delimiter is not None:
            return self.field_delimiter
        return "," if self.format is FileFormat.CSV else TEXT_DELIMITER

    @property
    def quote(self) -> str | None:
        """What encloses fields."""
        if self.quote_char is not None:
            return self.quote_char or None
        return '"' if self.format is FileFormat.CSV else None

    def table(self) -> Table:
        """Return the table as far as these options tell."""
        declared = self.schema or Schema(Table(TablePath("")))
        return declared.table_at(DEFAULT_TABLE, CATALOG)


@options
class LocalFileSourceOptions(FileTable):
    """Options of the LocalFile source: one table, or several in `tables_configs`."""

    #: Several tables: a list of blocks, each with the options of one.
    tables_configs: list[FileTable] | None = option(None, identity=True)
    #: Whether to look for new files without end (`continuous`) or to read what is there (`once`).
    #: By default a STREAMING job does and a BATCH job does not.
    discovery_mode: Literal["once", "continuous"] | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what no single option can tell."""
        if not self.tables_configs:
            yield from super().problems()
            return
        paths = [str(t.table().path) for t in self.tables_configs]
        for path in dict.fromkeys(p for p in paths if paths.count(p) > 1):
            yield (
                "tables_configs",
                f"tables_configs has table '{path}' twice. Give each its own schema.table.",
            )

    @property
    def tables(self) -> list[FileTable]:
        """Each table to read, in the order of the job file."""
        return self.tables_configs or [self]
