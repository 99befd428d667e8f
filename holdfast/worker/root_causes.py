"""Find the root cause in what Spark raises, and say it in one sentence.

Spark reports a full disk, a missing right or an untrusted certificate as a task that failed, and
leaves the cause at the bottom of its stack.  What is here is looked for first, so that people read
that, and what mends it.
"""

import errno
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from holdfast.connect.rights import may_not

_CAUSE = "Caused by: "
_READERS = re.compile(
    r"\bat \S+\.(?:FileScanRDD|JDBCRDD|DataSourceRDD|KafkaSourceRDD|NewHadoopRDD|HadoopRDD)\b"
)
_WRITTEN = re.compile(r"(?:rows to|failed to create|does not exist: ?) ?(?:file:)?(/[^\0\n]*)")
_READ = re.compile(r"(?:reading file|file) (?:file:)?(/\S*?)[.,]?\s")
_HIDDEN = re.compile(r"/(?:\.holdfast|_holdfast|_temporary)\b.*|/\.holdfast-.*")
_DRIVER = re.compile(r"ClassNotFoundException: (\S*[Dd]river\S*)")
_FORMAT = re.compile(r"\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source: ([^\s.]+)")
_FILES = re.compile(
    r"ClassNotFoundException: Class (\S*FileSystem) not found|No FileSystem for scheme \W*(\w+)"
)
_ENV_JARS = 'name it in env { jars = "/path/to/it.jar" } (or put it into pyspark\'s folder of jars)'


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something failed.  `heals`: the same may work later, without anybody's doing."""

    said: str
    code: str
    heals: bool = False


def find_cause(text: str) -> Cause | None:
    """Return the root cause in a text with a stack, if it is one that is known."""
    for find in (_disk, _nul, _right, _driver, _format, _files, _certificate):
        if found := find(text):
            return found
    return None


def cause_of(error: OSError) -> Cause | None:
    """Return the root cause of what the system refused to this process, if it is one of those."""
    path = str(error.filename or "")
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return _full(_HIDDEN.sub("", path))
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Cause(*_no_right(path or "what it names", "use"))
    return None


def while_reading(text: str) -> bool:
    """Say whether what failed is a source, though a sink was being written.

    Spark pulls rows from one through the other: where the innermost cause is in a reader, the
    writer below it only asked for a row.
    """
    return _READERS.search(text.rpartition(_CAUSE)[2]) is not None


def _disk(text: str) -> Cause | None:
    if "No space left on device" not in text and "Disk quota exceeded" not in text:
        return None
    return _full(_folder(text))


def _full(folder: str) -> Cause:
    where = f"the disk of {folder} is full" if folder else "a disk is full"
    free = _nearest(folder) if folder else None
    # Not how much is free: what the job had written is removed by the time anybody reads this.
    room = f" (the disk has {shutil.disk_usage(free).total:,} bytes)" if free else ""
    return Cause(
        f"{where}: no space left on device{room}. Make room there, or write to another disk.",
        "disk.full", heals=True,
    )  # fmt: skip


def _nul(text: str) -> Cause | None:
    if not re.search(r"Mkdirs failed to create [^\n]*\0", text):
        return None
    return Cause(
        "a value of a partition column has a NUL character, which no folder's name can hold."
        " Change it with a transform, or leave such rows out.",
        "sink.nul",
    )


def _right(text: str) -> Cause | None:
    folder = _folder(text)
    if "Permission denied" in text or "AccessControlException" in text:
        if read := _READ.search(text):
            return Cause(*_no_right(unquote(read[1]), "read"))
        return Cause(*_no_right(folder or "what it names", "write to"))
    if "Mkdirs failed to create" not in text or not folder:
        return None
    there = _nearest(folder)
    if there and not there.is_dir():
        said = f"{folder} cannot be a folder: {there} is a file. Give another path."
        return Cause(said, "sink.no_folder")
    if there and not os.access(there, os.W_OK | os.X_OK):
        return Cause(*_no_right(str(there), "write to"))
    return None


def _no_right(what: str, verb: str) -> tuple[str, str]:
    mend = "Give that user the right, or run Holdfast as one that has it."
    return f"{may_not(verb, what)}. {mend}", "permission"


def _driver(text: str) -> Cause | None:
    named = _DRIVER.search(text)
    if not named and "No suitable driver" not in text:
        return None
    which = f"the JDBC driver {named[1]}" if named else "a JDBC driver for this url"
    return Cause(
        f"Spark does not have {which}. Put the driver's jar on every worker and {_ENV_JARS}.",
        "spark.no_driver",
    )


def _format(text: str) -> Cause | None:
    found = _FORMAT.search(text)
    if not found:
        return None
    return Cause(
        f"Spark has no format '{found[1]}'. If that is right, put its jar on every worker and"
        f" {_ENV_JARS}.",
        "spark.no_format",
    )


def _files(text: str) -> Cause | None:
    found = _FILES.search(text)
    if not found:
        return None
    which = found[1].rpartition(".")[2] if found[1] else f"of {found[2]}:// paths"
    return Cause(
        f"Spark has no file system {which}. Put its jar on every worker and {_ENV_JARS}.",
        "spark.no_file_system",
    )


def _certificate(text: str) -> Cause | None:
    known = (
        "PKIX path", "CERTIFICATE_VERIFY_FAILED", "certificate verify failed", "CertPathValidator",
        "No subject alternative", "SunCertPathBuilder",
    )  # fmt: skip
    if not any(words in text for words in known):
        return None
    return Cause(
        "the server's certificate is not trusted. Give the certificate of who signed it with the"
        " connection's options, or mend the server's.",
        "certificate",
    )


def _folder(text: str) -> str:
    """Return the folder that was written, as the job names it."""
    found = _WRITTEN.search(text)
    return _HIDDEN.sub("", unquote(found[1])).split(" (exists=")[0].rstrip(". ") if found else ""


def _nearest(folder: str) -> Path | None:
    """Return the folder, or the nearest above it that is there."""
    return next((p for p in (Path(folder), *Path(folder).parents) if _there(p)), None)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
