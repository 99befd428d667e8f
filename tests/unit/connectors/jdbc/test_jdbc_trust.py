"""A database whose certificate is not trusted: said in words, and not tried again."""

from pathlib import Path

import psycopg
import pymysql
import pytest

from holdfast.connectors.jdbc.address import read_url
from holdfast.connectors.jdbc.dialects.mysql import MySql
from holdfast.connectors.jdbc.dialects.postgres import Postgres
from holdfast.errors import Unavailable, UserError

PG, MY = read_url("jdbc:postgresql://db/shop"), read_url("jdbc:mysql://db/shop")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("connection failed: SSL error: certificate verify failed", ""),
        (
            'server certificate for "other" (and 1 other name) does not match host name "db"',
            ' (server certificate for "other" (and 1 other name) does not match host name "db")',
        ),
    ],
)
def test_postgres(said: str, why: str) -> None:
    error = Postgres(PG).explain(psycopg.OperationalError(said))
    assert isinstance(error, UserError)
    assert str(error).startswith(
        f"the certificate of postgresql at db:5432/shop is not trusted{why}. Name the file"
    )
    assert "sslrootcert" in str(error)
    down = Postgres(PG).explain(psycopg.OperationalError("Connection refused"))
    assert isinstance(down, Unavailable)


def test_mysql() -> None:
    said = (
        "Can't connect to MySQL server on 'db' ([SSL: CERTIFICATE_VERIFY_FAILED] certificate"
        " verify failed: self-signed certificate (_ssl.c:1006))"
    )
    error = MySql(MY).explain(pymysql.OperationalError(2003, said))
    assert isinstance(error, UserError)
    assert "mysql at db:3306/shop is not trusted (self-signed certificate). Name" in str(error)
    assert "serverSslCert" in str(error)


@pytest.mark.parametrize(("text", "said"), [(None, "No such file"), ("x", "holds no certificate")])
def test_a_file_that_is_no_authority_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    address = read_url(f"jdbc:mysql://127.0.0.1:1/shop?sslMode=VERIFY_CA&serverSslCert={file}")
    with pytest.raises(UserError, match=f"serverSslCert: {file} cannot be used: .*{said}"):
        MySql(address).connect("a test")
