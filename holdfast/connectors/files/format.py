"""The file formats, codecs and modes job files may name, and what each is called in file names."""

import codecs
from enum import StrEnum


class FileFormat(StrEnum):
    """What a file holds."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ORC = "orc"
    XML = "xml"
    EXCEL = "excel"
    BINARY = "binary"


ENDINGS = {
    FileFormat.TEXT: (".txt",),
    FileFormat.CSV: (".csv",),
    FileFormat.JSON: (".json",),
    FileFormat.PARQUET: (".parquet",),
    FileFormat.ORC: (".orc",),
    FileFormat.XML: (".xml",),
    FileFormat.EXCEL: (".xlsx", ".xls"),
    FileFormat.BINARY: ("",),
}
"""How names of each format end; sinks use the first."""

LINES = (FileFormat.TEXT, FileFormat.CSV, FileFormat.JSON)
"""Formats of one row per line."""

SKIPPING = (FileFormat.TEXT, FileFormat.CSV, FileFormat.JSON, FileFormat.XML, FileFormat.EXCEL)
"""Formats whose rows can be left out one by one (`row_error_handle_way = SKIP`)."""

COLUMNAR = (FileFormat.PARQUET, FileFormat.ORC)
"""Formats that know their own columns."""


class Codec(StrEnum):
    """How the bytes of a file are compressed."""

    NONE = "none"
    LZO = "lzo"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZLIB = "zlib"
    GZIP = "gzip"
    BROTLI = "brotli"
    ZSTD = "zstd"


CODEC_ENDINGS = {
    Codec.NONE: "",
    Codec.LZO: ".lzo",
    Codec.SNAPPY: ".snappy",
    Codec.LZ4: ".lz4",
    Codec.ZLIB: ".zlib",
    Codec.GZIP: ".gz",
    Codec.BROTLI: ".br",
    Codec.ZSTD: ".zstd",
}

SPARK_CODECS: dict[FileFormat, dict[Codec, str]] = {
    FileFormat.PARQUET: {
        Codec.NONE: "uncompressed",
        Codec.SNAPPY: "snappy",
        Codec.LZ4: "lz4_raw",
        Codec.GZIP: "gzip",
        Codec.ZSTD: "zstd",
    },
    FileFormat.ORC: {
        Codec.NONE: "none",
        Codec.LZO: "lzo",
        Codec.SNAPPY: "snappy",
        Codec.LZ4: "lz4",
        Codec.ZLIB: "zlib",
        Codec.ZSTD: "zstd",
    },
}
"""What Spark's writers call each codec, where they have it."""

LINE_CODECS = {
    Codec.NONE: "none",
    # Hadoop's own LZO is not free software and so not at hand; this one writes the same format.
    Codec.LZO: "io.airlift.compress.lzo.LzopCodec",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZLIB: "deflate",
    Codec.GZIP: "gzip",
}
SPARK_CODECS |= dict.fromkeys(LINES, LINE_CODECS)

READABLE = (Codec.NONE, Codec.LZO, Codec.GZIP, Codec.ZLIB, Codec.LZ4, Codec.ZSTD, Codec.BROTLI)
"""Codecs a source can undo where a file's ending does not tell Spark."""


class Archive(StrEnum):
    """What kind of archive holds the files."""

    NONE = "NONE"
    ZIP = "ZIP"
    TAR = "TAR"
    TAR_GZ = "TAR_GZ"
    GZ = "GZ"


def python_encoding(name: str) -> str | None:
    """Return Python's name for a character encoding, or None if it knows no such encoding."""
    bare = name.strip()
    try:
        # Codecs that are no encodings of text (zip, rot13, idna) cannot do this.
        letter = "a".encode(bare)
        codecs.getincrementaldecoder(bare)("backslashreplace").decode(letter, True)
        return codecs.lookup(bare).name
    except (LookupError, UnicodeError):
        return None


def is_utf8(name: str) -> bool:
    """Say whether text in this encoding can be read as UTF-8."""
    return python_encoding(name) == "utf-8"
