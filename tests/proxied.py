"""A package index that only a proxy reaches, signed by an authority that nobody knows."""

import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "packages.corp.test"
"""A name that no resolver knows: who gets through to it came by the proxy."""


@dataclass(frozen=True)
class Company:
    """The proxy's address, the authority's certificate, the index behind both, who came."""

    proxy: str
    authority: Path
    index: str
    asked: list[str]


@contextmanager
def company(folder: Path, packages: Path) -> Iterator[Company]:
    """Serve the wheels in `packages` as a company's index does."""
    authority, context = certificates(folder)
    listing(folder / "www", packages)
    asked: list[str] = []
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    index = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(folder / "www")))
    index.socket = context.wrap_socket(index.socket, server_side=True)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), tunnel_to(index.server_port, asked))
    serving = [threading.Thread(target=s.serve_forever, daemon=True) for s in (index, proxy)]
    for thread in serving:
        thread.start()
    try:
        yield Company(
            f"http://127.0.0.1:{proxy.server_port}", authority, f"https://{HOST}/simple", asked
        )
    finally:
        for server in (index, proxy):
            server.shutdown()
            server.server_close()


def tunnel_to(port: int, asked: list[str]) -> type[BaseHTTPRequestHandler]:
    """Return a proxy that lets HTTPS through, to one server, whatever host is asked for."""

    class Tunnel(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            with socket.create_connection(("127.0.0.1", port)) as there:
                self.send_response(200)
                self.end_headers()
                pump(self.connection, there)

        def log_message(self, format: str, *args: object) -> None:
            return

    return Tunnel


def pump(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes both ways until either side ends."""
    to = {one: other, other: one}
    while True:
        for ready in select.select(list(to), [], [])[0]:
            data = ready.recv(65_536)
            if not data:
                return
            to[ready].sendall(data)


def listing(www: Path, packages: Path) -> None:
    """Lay the wheels out as package indexes do."""
    place = www / "simple" / "holdfast"
    place.mkdir(parents=True)
    links = []
    for wheel in packages.glob("*.whl"):
        (place / wheel.name).write_bytes(wheel.read_bytes())
        links.append(f'<a href="{wheel.name}">{wheel.name}</a>')
    (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")


def certificates(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Make an authority, and the server's side of a certificate that it has signed."""
    authority, key, request, signed = (
        folder / name for name in ("authority.pem", "key.pem", "request.pem", "signed.pem")
    )
    names = folder / "names"
    names.write_text(f"subjectAltName=DNS:{HOST}\nbasicConstraints=CA:FALSE\n")
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Corp Root",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
        "keyUsage=critical,keyCertSign,cRLSign", "-keyout", folder / "root.pem", "-out", authority,
    )  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}", "-keyout", key, "-out",
            request)  # fmt: skip
    openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", folder / "root.pem",
            "-CAcreateserial", "-days", "2", "-extfile", names, "-out", signed)  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    return authority, context


def openssl(*words: object) -> None:
    """Run openssl, which is on every machine that has TLS."""
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
