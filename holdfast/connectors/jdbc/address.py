"""Read a `jdbc:` URL for drivers that are not Java's."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, unquote

PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
EXAMPLES = "jdbc:postgresql://host:5432/database or jdbc:mysql://host:3306/database"
_URL = re.compile(r"jdbc:(?P<kind>[a-z0-9]+):(?://(?P<hosts>[^/?]*))?/?(?P<rest>.*)", re.DOTALL)
_HOST = re.compile(r"(?P<host>\[[^\]]+\]|[^:]*)(?::(?P<port>\d+))?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is and who asks.  Plain data, sent to Spark's workers."""

    kind: str
    hosts: tuple[tuple[str, int], ...]
    database: str
    user: str = ""
    password: str = field(default="", repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the URL and `properties` say besides, under the names Java's drivers have for it."""

    timeout_s: int = 30

    @property
    def shown(self) -> str:
        """This address for messages, without anything secret."""
        where = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{self.kind} at {where}/{self.database}"

    def setting(self, name: str) -> str | None:
        """Return a setting by its name in any case, or None."""
        wanted = name.lower()
        return next((v for k, v in self.settings.items() if k.lower() == wanted), None)


def read_url(url: str) -> Address:
    """Return the address a URL names.  Raises ValueError with a sentence that shows no secret."""
    found = _URL.fullmatch(url.strip())
    if not found:
        raise ValueError(f"url is no jdbc: URL. Write {EXAMPLES}.")
    kind = found["kind"]
    if kind not in PORTS:
        raise ValueError(
            f"url names a {kind} database. Jdbc writes to PostgreSQL, MySQL and MariaDB;"
            " for others use sink Spark with format = jdbc."
        )
    database, _, query = found["rest"].partition("?")
    hosts = tuple(_host(text, kind) for text in (found["hosts"] or "localhost").split(","))
    if kind != "postgresql" and len(hosts) > 1:
        raise ValueError(f"url names {len(hosts)} hosts. For {kind}, name one.")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    return Address(kind, hosts, unquote(database), settings=settings)


def same_server(url: str) -> str:
    """Return a URL without who connects and how, so that only another database looks different."""
    address = read_url(url)
    kind = "mysql" if address.kind == "mariadb" else address.kind
    schema = address.setting("currentSchema")
    return f"{replace(address, kind=kind).shown}" + (f", schema {schema}" if schema else "")


def _host(text: str, kind: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if not found:
        raise ValueError(f"url has no host and port where it should. Write {EXAMPLES}.")
    return found["host"].strip("[]") or "localhost", int(found["port"] or PORTS[kind])
