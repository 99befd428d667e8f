"""Blobs on real stores: a folder, and S3 from moto's server process."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core import gather
from holdfast.core.checkpoint import CheckpointKind, Pending
from holdfast.core.completion import Completion
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.master import checkpoint_content
from holdfast.master.ports import BlobBad
from holdfast.process.checkpoint_store import StoredBlobs, open_blobs
from tests.cluster.s3 import S3Server


class Server(S3Server):
    """Moto's S3, and blobs on it."""

    def blobs(self, path: str, limit_s: float = 20.0) -> StoredBlobs:
        secret = {"access_key": "a", "secret_key": "b"}
        return open_blobs(f"s3://{path}?endpoint={self.url}&region=eu-west-1", secret, limit_s)


@pytest.fixture(scope="module")
def s3() -> Iterator[Server]:
    server = Server()
    server.make_bucket("bucket")
    yield server
    server.stop()


@pytest.fixture(params=["folder", "uri", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> StoredBlobs:
    match request.param:
        case "folder":
            return open_blobs(str(tmp_path / "kept"))
        case "uri":
            return open_blobs(f"file:{tmp_path}/with space".replace(" ", "%20"))
        case _:
            server: Server = request.getfixturevalue("s3")
            return server.blobs(f"bucket/{tmp_path.name}")


def test_what_was_put_is_there_whole(blobs: StoredBlobs) -> None:
    async def run() -> None:
        content = os.urandom(1 << 16)
        await blobs.put("job/life/0001/00000001-3", content)
        await blobs.put("job/life/0001/00000002-3", b"")
        await blobs.put("job/life/0002/00000001-3", b"three")
        await blobs.put("job/lifetime/0001/00000001-3", b"four")
        assert await blobs.get("job/life/0001/00000001-3") == content
        assert await blobs.get("job/life/0001/00000002-3") == b""
        assert await blobs.names("job/life/") == [
            "job/life/0001/00000001-3", "job/life/0001/00000002-3", "job/life/0002/00000001-3",
        ]  # fmt: skip
        assert len(await blobs.names("job/life")) == 4
        assert await blobs.names("nobody/") == []

    asyncio.run(run())


def test_put_again(blobs: StoredBlobs) -> None:
    async def run() -> None:
        await blobs.put("a/b", b"one")
        await blobs.put("a/b", b"one")
        with pytest.raises(Unavailable, match="holds another object under the name a/b"):
            await blobs.put("a/b", b"two")
        assert await blobs.get("a/b") == b"one"

    asyncio.run(run())


def test_drop_is_repeatable(blobs: StoredBlobs) -> None:
    async def run() -> None:
        await blobs.put("a/b", b"one")
        await blobs.drop("a/b")
        await blobs.drop("a/b")
        assert await blobs.names("") == []
        with pytest.raises(BlobBad, match="has no object a/b"):
            await blobs.get("a/b")
        await blobs.put("a/b", b"anew")
        assert await blobs.get("a/b") == b"anew"

    asyncio.run(run())


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".x", "a\0"]
)
def test_names_stay_inside(blobs: StoredBlobs, name: str) -> None:
    async def run() -> None:
        for call in (blobs.put(name, b""), blobs.get(name), blobs.drop(name)):
            with pytest.raises(UserError, match="is no name for"):
                await call
        with pytest.raises(UserError, match="is no name for"):
            await blobs.names("../x/")

    asyncio.run(run())


def test_store_that_is_not_there_is_no_missing_blob(s3: Server, tmp_path: Path) -> None:
    """A disk that is not mounted, and a bucket that is gone, have lost nothing."""
    for blobs in (open_blobs(str(tmp_path / "unmounted")), s3.blobs("nobucket/x")):
        with pytest.raises(Unavailable):
            asyncio.run(blobs.get("a/b"))
    with pytest.raises(Unavailable):
        asyncio.run(s3.blobs("nobucket/x").put("a/b", b"1"))


def test_outage_is_no_missing_blob() -> None:
    server = Server()
    try:
        server.make_bucket("bucket")
        blobs = server.blobs("bucket/x", 5.0)
        asyncio.run(blobs.put("a/b", b"1"))
    finally:
        server.stop()

    async def run() -> None:
        with pytest.raises(Unavailable):
            await blobs.get("a/b")
        with pytest.raises((Unavailable, OutcomeUnknown)):
            await blobs.put("a/c", b"2")
        with pytest.raises(Unavailable):
            await blobs.names("a/")
        with pytest.raises(Unavailable):
            await blobs.drop("a/b")

    asyncio.run(run())


HALF = """
import os, sys
from pyarrow.fs import S3FileSystem
files = S3FileSystem(access_key="a", secret_key="b", scheme="http", endpoint_override=sys.argv[1])
out = files.open_output_stream("bucket/half/a/b")
out.write(b"x" * (12 << 20))
os._exit(9)
"""


def test_a_writer_that_dies_in_the_middle_leaves_nothing_to_see(s3: Server) -> None:
    asyncio.run(s3.blobs("bucket/half").put("a/whole", b"1"))
    dead = subprocess.run(
        [sys.executable, "-c", HALF, f"127.0.0.1:{s3.port}"], check=False, timeout=120
    )
    assert dead.returncode == 9

    async def run() -> None:
        blobs = s3.blobs("bucket/half")
        assert await blobs.names("a/") == ["a/whole"]
        with pytest.raises(BlobBad, match="has no object a/b"):
            await blobs.get("a/b")
        await blobs.put("a/b", os.urandom(12 << 20))
        assert len(await blobs.get("a/b")) == 12 << 20

    asyncio.run(run())


def test_what_was_changed_behind_our_back_is_noticed(s3: Server) -> None:
    pending, part = (
        Pending(7, CheckpointKind.PERIODIC, 1),
        PipelineRecord("17", "a", 1, (), Completion(())),
    )
    whole = checkpoint_content.write(part, gather.begin(pending, ()))
    asyncio.run(s3.blobs("bucket/damaged").put("a/b", whole))
    assert checkpoint_content.read(asyncio.run(s3.blobs("bucket/damaged").get("a/b"))).number == 7
    for damaged in (whole[:-1], whole.replace(b"positions", b"Positions"), b""):
        with s3.files().open_output_stream("bucket/damaged/a/b") as out:
            out.write(damaged)
        with pytest.raises(BlobBad, match="cut short or damaged"):
            checkpoint_content.read(asyncio.run(s3.blobs("bucket/damaged").get("a/b")))


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = open_blobs(str(tmp_path))
    asyncio.run(blobs.put("a/b", b"1"))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="put a/c: No space left on device"):
        asyncio.run(blobs.put("a/c", b"2"))
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b"]


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="Not a directory"):
        asyncio.run(open_blobs(str(tmp_path / "file")).put("a/b", b"1"))
    with pytest.raises(Unavailable, match=r"it has no \.holdfast-blobs"):
        asyncio.run(open_blobs(str(tmp_path / "file")).get("a/b"))


def test_drafts_of_the_dead_are_invisible_and_go_with_the_folder(tmp_path: Path) -> None:
    async def run() -> None:
        blobs = open_blobs(str(tmp_path))
        await blobs.put("job/life/1", b"1")
        (tmp_path / "job/life/.2.abc").write_bytes(b"half of i")
        assert await blobs.names("") == ["job/life/1"]
        await blobs.drop("job/life/1")
        assert not (tmp_path / "job").exists()

    asyncio.run(run())


def test_call_that_hangs() -> None:
    gate = threading.Event()

    class Hanging:
        def write(self, name: str, content: bytes) -> None:
            gate.wait()

        def read(self, name: str) -> bytes:
            gate.wait()
            return b""

        def remove(self, name: str) -> None:
            gate.wait()

        def names(self, below: str) -> list[str]:
            gate.wait()
            return []

    async def run() -> None:
        blobs = StoredBlobs(Hanging(), "the store", 0.05)
        with pytest.raises(OutcomeUnknown, match="whether it stored a/b"):
            await blobs.put("a/b", b"1")
        for call in (blobs.get("a/b"), blobs.drop("a/b"), blobs.names("a")):
            with pytest.raises(Unavailable, match=r"has not answered (get|drop|names)"):
                await call
        gate.set()

    asyncio.run(run())


@pytest.mark.parametrize("url", ["s3:///nothing", "s3://b/x?colour=red", "gopher://x/y"])
def test_url_that_is_none(url: str) -> None:
    with pytest.raises(UserError, match="Checkpoints cannot be kept at"):
        open_blobs(url)


def test_keys_are_not_shown() -> None:
    assert "secret" not in open_blobs("s3://key:secret@bucket/x").where
