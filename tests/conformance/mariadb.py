"""A real MariaDB server for tests, in a folder of its own that goes with it."""

import shutil
import tempfile
from pathlib import Path

from tests.chaos.engine import mariadb
from tests.chaos.engine.mariadb import NoMariaDb

__all__ = ["MariaDb", "NoMariaDb"]


class MariaDb(mariadb.MariaDb):
    """A MariaDB server that listens on this machine alone; user `root` has the password `hush`."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="holdfast-test-")))

    def remove(self) -> None:
        """End it for good, and remove its folder."""
        super().remove()
        shutil.rmtree(self.folder)
