"""Where a table's files are: a folder of this machine, or of an object store.

PySpark from PyPI has no S3 file system.  A job that names an `s3a://` path is refused while it is
planned unless the jar that has one is there.
"""

import importlib.util
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.fs as fs

from holdfast.connect.plugin import problems_of
from holdfast.connect.rights import may_not
from holdfast.errors import UserError

S3_SCHEMES = ("s3", "s3a", "s3n")
S3_JAR = "hadoop-aws"
S3_OPTIONS = {
    # Hadoop's setting: pyarrow's, object_store's
    "fs.s3a.access.key": ("access_key", "AWS_ACCESS_KEY_ID"),
    "fs.s3a.secret.key": ("secret_key", "AWS_SECRET_ACCESS_KEY"),
    "fs.s3a.session.token": ("session_token", "AWS_SESSION_TOKEN"),
    "fs.s3a.endpoint": ("endpoint_override", "AWS_ENDPOINT_URL"),
    "fs.s3a.endpoint.region": ("region", "AWS_REGION"),
}

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


def same_place(url: str) -> str:
    """Return a URL as all that mean the same folder are written."""
    return Location(url).path if Location(url).is_local else url.rstrip("/")


@dataclass(frozen=True)
class Location:
    """A folder, as Spark, pyarrow and other libraries name it.  `s3` has Hadoop's settings."""

    url: str
    s3: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether this is a folder of this machine."""
        return urlsplit(self.url).scheme in ("", "file")

    @property
    def path(self) -> str:
        """The path as pyarrow's file system takes it: without scheme, absolute if local."""
        parts = urlsplit(self.url)
        if self.is_local:
            text = unquote(parts.path) if parts.scheme else self.url
            return str(Path(text).absolute())
        return f"{parts.netloc}{parts.path}".rstrip("/")

    @property  # not cached_property: before Python 3.12 all places would share its lock
    def files(self) -> fs.FileSystem:
        """The file system that `path` is a path of."""
        if self.is_local:
            return fs.LocalFileSystem()
        given: dict[str, Any] = {S3_OPTIONS[k][0]: v for k, v in self.s3.items() if k in S3_OPTIONS}
        return fs.S3FileSystem(**given)

    @property
    def storage_options(self) -> dict[str, str]:
        """What Rust's object_store must know."""
        given = {S3_OPTIONS[k][1]: v for k, v in self.s3.items() if k in S3_OPTIONS}
        if given.get("AWS_ENDPOINT_URL", "").startswith("http:"):
            given["AWS_ALLOW_HTTP"] = "true"
        return given

    def below(self, *names: str) -> "Location":
        """Return a folder in this one."""
        return Location("/".join((self.url.rstrip("/"), *names)), self.s3)

    @property
    def spark_url(self) -> str:
        """The folder as Spark takes it."""
        return Path(self.path).as_uri() if self.is_local else f"s3a://{self.path}"

    @property
    def plain_url(self) -> str:
        """The folder as libraries without Hadoop take it."""
        return self.path if self.is_local else f"s3://{self.path}"

    def listed(self, folder: str = "", *, deep: bool = False) -> list[fs.FileInfo]:
        """Return what is in a folder below; nothing if there is no such folder."""
        where = f"{self.path}/{folder}" if folder else self.path
        found = self.files.get_file_info(
            fs.FileSelector(where, allow_not_found=True, recursive=deep)
        )
        return sorted(found, key=lambda f: f.path)

    def has(self, names: Iterable[str]) -> list[bool]:
        """Say of each file below whether it exists."""
        found = self.files.get_file_info([f"{self.path}/{name}" for name in names])
        return [one.type is fs.FileType.File for one in found]

    def move(self, source: str, target: str) -> None:
        """Give a file below another name below."""
        folder = target.rpartition("/")[0]
        if folder:
            self.files.create_dir(f"{self.path}/{folder}", recursive=True)
        self.files.move(f"{self.path}/{source}", f"{self.path}/{target}")

    def read(self, name: str) -> bytes | None:
        """Return a small file below; None if there is none."""
        try:
            with self.files.open_input_stream(f"{self.path}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Put a small file below, whole, in the place of one that is there."""
        folder, _, last = name.rpartition("/")
        draft = f"{folder}/.{last}.{uuid.uuid4().hex}" if self.is_local else name
        if self.is_local:
            self.files.create_dir(f"{self.path}/{folder}", recursive=True)
        with self.files.open_output_stream(f"{self.path}/{draft}") as stream:
            stream.write(content)
        if draft != name:
            self.files.move(f"{self.path}/{draft}", f"{self.path}/{name}")

    def remove(self, folder: str) -> None:
        """Remove a folder below and what is in it, unless it is gone."""
        try:
            self.files.delete_dir(f"{self.path}/{folder}")
        except FileNotFoundError:
            return


def place_problem(url: str) -> str | None:
    """Return what is wrong with where a table shall be, if anything is."""
    scheme = urlsplit(_PLACEHOLDER.sub("x", url)).scheme
    if scheme in ("", "file", *S3_SCHEMES):
        path = urlsplit(_PLACEHOLDER.sub("x", url)).path.strip("/")
        return None if path or scheme in S3_SCHEMES else f"'{url}' is the whole machine."
    return f"'{url}' is not a path this sink can write. Give a folder, file:///... or s3a://..."


def refuse_unwritable(connector: str, place: Location) -> None:
    """Raise UserError where a folder of this machine cannot be created or written to."""
    folder = Path(place.path)
    if not place.is_local:
        return
    there = next(p for p in (folder, *folder.parents) if os.path.lexists(p))
    if not there.is_dir():
        why = f"{there} is a file. Give the path of a folder."
    elif not os.access(there, os.W_OK | os.X_OK):
        why = f"{may_not('write to', there)}. Give that user the right, or give another path."
    else:
        return
    raise UserError(f"{connector} cannot write to {place.path}: {why}", code="sink.unwritable")


def look_around(connector: str, place: Location) -> Iterator[str]:
    """Yield why nothing can be written here; a place that only rows name is not looked at."""
    if not _PLACEHOLDER.search(place.url):
        yield from problems_of(partial(refuse_unwritable, connector, place))


def jar_problem(url: str, spark: Mapping[str, str]) -> str | None:
    """Return why Spark cannot write here with these settings: a jar is missing, and which."""
    if urlsplit(_PLACEHOLDER.sub("x", url)).scheme not in S3_SCHEMES or _has_jar(spark):
        return None
    return (
        f"'{url}' needs Spark's S3 file system, which PySpark from PyPI does not have. Get the jar"
        f" {S3_JAR}-{_hadoop_version()}.jar and the AWS SDK bundle it asks for, put both on every"
        ' worker, and name them in env { jars = "/path/to/one.jar;/path/to/other.jar" } -'
        " or put them into the jars folder of pyspark."
    )


def no_table(connector: str, place: Location) -> UserError:
    """Return what to say where a table is not there."""
    return UserError(
        f"{connector} cannot write to {place.url}: there is no table."
        " Create it, or set schema_save_mode = CREATE_SCHEMA_WHEN_NOT_EXIST.",
        code="sink.schema_missing",
    )


def _has_jar(spark: Mapping[str, str]) -> bool:
    named = ",".join(
        spark.get(key, "")
        for key in ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
    )
    return S3_JAR in named or any(S3_JAR in jar.name for jar in _spark_jars())


def _hadoop_version() -> str:
    found = (re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name) for jar in _spark_jars())
    return next((match[1] for match in found if match), "VERSION")


def _spark_jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return []
    return sorted(Path(spec.submodule_search_locations[0], "jars").glob("*.jar"))
