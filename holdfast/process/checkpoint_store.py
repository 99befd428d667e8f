"""Where checkpoints are kept: a folder, S3, or any file system that Arrow knows.

An object is whole or invisible.  In a folder it is written under another name, flushed, and only
then given its own, which never overwrites; an object store shows what was put when it is complete.

That an object is missing is believed only where the store itself is seen to be there: a disk that
is not mounted must not look like a lost checkpoint.  `.holdfast-blobs` at the root says so.
"""

import asyncio
import errno
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from pyarrow import ArrowException
from pyarrow.fs import (
    AwsStandardS3RetryStrategy,
    FileSelector,
    FileSystem,
    FileType,
    LocalFileSystem,
    S3FileSystem,
)

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.master.ports import BlobBad

T = TypeVar("T")

MARKER = ".holdfast-blobs"
THREADS = 4
TRIES = 3
LIMIT_S = 30.0
"""How long a call may take before its caller continues without an answer."""

DROPPED_TOGETHER = 20
"""How many objects one call removes: a hop to a thread costs more than to remove one."""

S3_OPTIONS = ("endpoint", "region", "access_key", "secret_key", "session_token")


class BlobStore(Protocol):
    """Blocking access to one store.  Errors of the store are `OSError`s.

    A missing object is `FileNotFoundError`.
    """

    def write(self, name: str, content: bytes) -> None:
        """Make an object appear, whole, under a name that is free; FileExistsError if not."""

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""

    def remove(self, name: str) -> None:
        """Remove an object; FileNotFoundError if there is none."""

    def names(self, below: str) -> list[str]:
        """Return the names of all objects below a folder ("": all)."""


class StoredBlobs:
    """The `Blobs` port on a real store: calls run in threads, each with a time limit."""

    def __init__(self, store: BlobStore, where: str, limit_s: float = LIMIT_S) -> None:
        self.store = store
        self.where = where
        self.limit_s = limit_s
        self._marked = False
        # Of its own, so that a store that hangs takes no thread from anything else.
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="blobs")

    async def put(self, name: str, content: bytes) -> None:
        """Store an object under a new name; the same bytes again change nothing."""
        _check(name)
        try:
            await self._run("put", name, lambda: self._put(name, content))
        except TimeoutError as error:
            raise OutcomeUnknown(
                f"{self.where} has not answered for {self.limit_s:g} s whether it stored {name}.",
                code="blob.unknown",
            ) from error

    async def get(self, name: str) -> bytes:
        """Return an object; `BlobBad` only if the store is there and the object is not."""
        _check(name)
        return await self._asked("get", name, lambda: self._get(name))

    async def drop(self, *names: str) -> None:
        """Remove objects, one after the other.  Repeatable."""
        for name in names:
            _check(name)
        for at in range(0, len(names), DROPPED_TOGETHER):
            some = names[at : at + DROPPED_TOGETHER]
            about = some[0] if len(some) == 1 else f"{some[0]} and {len(some) - 1} more"
            await self._asked("drop", about, partial(self._drop, some))

    async def names(self, prefix: str) -> list[str]:
        """Return the names that start with a prefix, sorted."""
        folder = prefix.rpartition("/")[0]
        if folder:
            _check(folder)
        listed = await self._asked("names", prefix, lambda: self.store.names(folder))
        return sorted(n for n in listed if n.startswith(prefix) and not _hidden(n))

    def close(self) -> None:
        """Let the threads end; calls on their way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _put(self, name: str, content: bytes) -> None:
        if not self._marked:
            self._write_once(MARKER, b"Checkpoints of Holdfast.\n")
            self._marked = True
        if not self._write_once(name, content):
            raise Unavailable(
                f"{self.where} holds another object under the name {name}. Do two clusters keep"
                " their checkpoints in one place? Give each a place of its own.",
                code="blob.taken",
            )

    def _write_once(self, name: str, content: bytes) -> bool:
        """Write an object; say whether it now holds these bytes."""
        try:
            self.store.write(name, content)
        except FileExistsError:
            return self.store.read(name) == content
        return True

    def _get(self, name: str) -> bytes:
        try:
            return self.store.read(name)
        except FileNotFoundError as error:
            if not self._is_there():
                raise Unavailable(
                    f"{self.where} is not the place where checkpoints are kept: it has no"
                    f" {MARKER}. Is it mounted, and is the path right?",
                    code="blob.no_store",
                ) from error
            raise BlobBad(f"{self.where} has no object {name}.", code="blob.missing") from error

    def _is_there(self) -> bool:
        try:
            self.store.read(MARKER)
        except FileNotFoundError:
            return False
        return True

    def _drop(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self.store.remove(name)

    async def _asked(self, verb: str, name: str, call: Callable[[], T]) -> T:
        """Run a call that may simply be repeated."""
        try:
            return await self._run(verb, name, call)
        except TimeoutError as error:
            raise Unavailable(
                f"{self.where} has not answered {verb} {name} for {self.limit_s:g} s.",
                code="blob.unavailable",
            ) from error

    async def _run(self, verb: str, name: str, call: Callable[[], T]) -> T:
        def explained() -> T:
            try:
                return call()
            except (OSError, ArrowException) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise Unavailable(
                    f"{self.where} cannot {verb} {name}: {reason}", code="blob.unavailable"
                ) from error

        running = asyncio.get_running_loop().run_in_executor(self._pool, explained)
        return await asyncio.wait_for(running, self.limit_s)


class ArrowStore:
    """Any file system of Arrow's."""

    def __init__(self, files: FileSystem, root: str) -> None:
        self.files = files
        self.root = root.rstrip("/")

    def write(self, name: str, content: bytes) -> None:
        """Put an object in one go: it shows when it is complete."""
        path = self._path(name)
        # Arrow cannot ask for "only if absent"; no two writers use one name (it has the term).
        if self.files.get_file_info(path).type is not FileType.NotFound:
            raise FileExistsError(path)
        if not isinstance(self.files, S3FileSystem):
            self.files.create_dir(path.rpartition("/")[0], recursive=True)
        with self.files.open_output_stream(path) as out:
            out.write(content)

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""
        with self.files.open_input_file(self._path(name)) as file:
            return file.readall()

    def remove(self, name: str) -> None:
        """Remove an object."""
        self.files.delete_file(self._path(name))

    def names(self, below: str) -> list[str]:
        """Return the names of all objects below a folder."""
        top = self._path(below) if below else self.root
        found = self.files.get_file_info(FileSelector(top, allow_not_found=True, recursive=True))
        start = len(self.root) + 1
        return [info.path[start:] for info in found if info.type is FileType.File]

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


def open_blobs(
    url: str, options: Mapping[str, str] | None = None, limit_s: float = LIMIT_S
) -> StoredBlobs:
    """Open a place for checkpoints: a folder, `s3://bucket/path?endpoint=...`, or Arrow's URIs.

    `options` may hold what a URL should not show: access_key, secret_key, session_token.  S3's
    usual environment variables count where neither has a value.
    """
    scheme = urlsplit(url).scheme
    try:
        if scheme == "s3":
            return StoredBlobs(_s3(url, dict(options or {}), limit_s), _shown(url), limit_s)
        if scheme in ("", "file"):
            path = unquote(urlsplit(url).path) if scheme else url
            return StoredBlobs(Folder(path), path, limit_s)
        files, root = FileSystem.from_uri(url)
    except (OSError, ValueError, ArrowException) as error:
        raise UserError(
            f"Checkpoints cannot be kept at {_shown(url)}: {error}. Give a folder,"
            " s3://bucket/path?endpoint=...&region=..., or a URI that Arrow's file systems know.",
            code="blob.url",
        ) from error
    if isinstance(files, LocalFileSystem):
        return StoredBlobs(Folder(root), root, limit_s)
    return StoredBlobs(ArrowStore(files, root), _shown(url), limit_s)


def _s3(url: str, options: dict[str, str], limit_s: float) -> ArrowStore:
    parts = urlsplit(url)
    asked = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query))) | options
    unknown = [key for key in asked if key not in S3_OPTIONS]
    if unknown:
        raise ValueError(f"option {unknown[0]} is not one of {', '.join(S3_OPTIONS)}")
    if not parts.hostname:
        raise ValueError("it names no bucket")
    endpoint = asked.get("endpoint", "")
    files = S3FileSystem(
        access_key=asked.get("access_key") or unquote(parts.username or "") or None,
        secret_key=asked.get("secret_key") or unquote(parts.password or "") or None,
        session_token=asked.get("session_token"),
        region=asked.get("region") or os.environ.get("AWS_REGION") or "us-east-1",
        endpoint_override=endpoint.partition("://")[2] or endpoint or None,
        scheme="http" if endpoint.startswith("http://") else "https",
        connect_timeout=limit_s / 3,
        request_timeout=limit_s,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=2),
    )
    bucket = parts.netloc.rpartition("@")[2]
    return ArrowStore(files, f"{bucket}/{parts.path.strip('/')}")


def _shown(url: str) -> str:
    """Return a URL without what it may say of keys."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _check(name: str) -> None:
    """Refuse a name that could lead out of the root, or be taken for one of our own files."""
    pieces = name.split("/")
    if any(p in ("", ".", "..") or "\0" in p or "\\" in p for p in pieces) or _hidden(name):
        raise UserError(f"'{name}' is no name for a checkpoint's object.", code="blob.name")


def _hidden(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".")


class Folder:
    """Objects as files below a root: written under another name, flushed, then given their own."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).absolute()

    def write(self, name: str, content: bytes) -> None:
        """Create a file, whole, if its name is free."""
        path = self.root / name
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        made = self._draft(draft, content)
        try:
            _give_name(draft, path)
        finally:
            # A full disk must not keep a file that is never read.
            draft.unlink(missing_ok=True)
        try:
            for folder in (path.parent, *made):
                _sync(folder)
        except OSError as error:
            raise OutcomeUnknown(
                f"{path} may not survive a power cut: {error.strerror}.", code="blob.unknown"
            ) from error

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        try:
            return (self.root / name).read_bytes()
        except NotADirectoryError as error:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from error

    def remove(self, name: str) -> None:
        """Remove a file, and with the last one of a folder the folder."""
        path = self.root / name
        path.unlink()
        for folder in path.parents:
            if folder == self.root or not _remove_if_done(folder):
                break

    def names(self, below: str) -> list[str]:
        """Return the names of all files below a folder."""
        return [
            str((Path(folder) / name).relative_to(self.root))
            for folder, _, names in os.walk(self.root / below, onerror=_unless_missing)
            for name in names
        ]

    def _draft(self, draft: Path, content: bytes) -> list[Path]:
        """Write a file under a hidden name; return the folders that got a new folder."""
        for left in reversed(range(TRIES)):
            missing = [p for p in draft.parents if not p.exists()]
            _make(draft.parent)
            try:
                with draft.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                return [p.parent for p in missing]
            except FileNotFoundError:
                # Another process removed the folder because it was empty.
                if not left:
                    raise
            except OSError:
                draft.unlink(missing_ok=True)
                raise
        raise AssertionError("the last try raises")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        # There is a file in place of the folder, so there is no object of this name.
        why = os.strerror(errno.ENOTDIR)
        raise NotADirectoryError(errno.ENOTDIR, why, str(folder)) from error


def _give_name(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        # Not every file system can give a file two names; no two writers use one name.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        draft.rename(path)


def _remove_if_done(folder: Path) -> bool:
    """Remove a folder that holds nothing but drafts of processes that died; say whether it did."""
    if any(not entry.name.startswith(".") for entry in folder.iterdir()):
        return False
    for draft in folder.glob(".*"):
        if draft.is_file():
            draft.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
        return True
    return False


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
