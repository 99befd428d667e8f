"""Sinks and sources as the tests of their modules make them."""

from tests.unit.connectors.conftest import make, mistakes, node, staging
from tests.unit.connectors.jdbc.conftest import (
    mariadb,
    mariadb_server,
    postgres,
    postgres_server,
    server,
)
from tests.unit.connectors.local_file.conftest import sink, source

__all__ = [
    "make", "mariadb", "mariadb_server", "mistakes", "node", "postgres", "postgres_server",
    "server",
    "sink", "source", "staging",
]  # fmt: skip
