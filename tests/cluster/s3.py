"""An S3 for tests: moto's server."""

import socket
import subprocess
import sys
import time
import urllib.request

from pyarrow.fs import S3FileSystem


class S3Server:
    """Moto's S3 as a process of its own, on a free port of loopback."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/moto-api/", timeout=1):
                    return process
            except OSError:
                assert time.monotonic() < until and process.poll() is None, "moto did not start"
                time.sleep(0.1)

    def files(self) -> S3FileSystem:
        return S3FileSystem(
            access_key="a", secret_key="b", scheme="http", allow_bucket_creation=True,
            endpoint_override=f"127.0.0.1:{self.port}",
        )  # fmt: skip

    def make_bucket(self, name: str) -> None:
        self.files().create_dir(name)
