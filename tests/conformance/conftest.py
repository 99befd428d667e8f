"""Servers for the conformance tests: each is started once, when a test first needs it."""

from collections.abc import Iterator

import pytest

from tests.conformance.servers import Etcd, Postgres, start_etcd


@pytest.fixture(scope="session")
def etcd() -> Iterator[Etcd]:
    """An etcd of one member."""
    (server,) = start_etcd(1)
    yield server
    server.remove()


@pytest.fixture(scope="session")
def etcd_cluster() -> Iterator[list[Etcd]]:
    """An etcd of three members."""
    servers = start_etcd(3)
    yield servers
    for server in servers:
        server.remove()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    server = Postgres()
    server.start()
    yield server
    server.remove()
