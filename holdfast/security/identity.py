"""The secrets of a node beside its token: how workers join, how job files are sealed, TLS.

A worker and a master prove to each other that they know the join token without either sending it:
whoever only took over an address learns nothing and is not believed.
"""

import hmac
import ipaddress
import ssl
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.config import Config, find_token, host_and_port
from holdfast.errors import UserError
from holdfast.model.secret import Secret

SCHEME = "Join"
NONCE, PROOF = "holdfast-nonce", "holdfast-proof"
NONCES_KEPT = 100_000


def join_token(config: Config, *, create: bool) -> Secret:
    """Return the token with which workers join; made from the cluster's where none is given."""
    if config.join_token:
        return config.join_token
    if config.join_token_file:
        return Secret(_lines(Path(config.join_token_file), "join token")[0])
    token = find_token(config, create=create)
    return Secret(_mac(token, "join token", ""))


def client_token(config: Config) -> Secret:
    """Return the token with which a cluster is asked.

    Where all masters are this machine's own, a client may be the first who needs it: whoever types
    `holdfast master &` and `holdfast submit` in one go is not told to start a master first.
    """
    own = all(_is_local(urlsplit(url).hostname or "") for url in config.masters)
    return find_token(config, create=own)


def seal_secrets(config: Config, token: Secret) -> list[Secret]:
    """Return what job files are sealed with: the first for new ones, all to open old ones."""
    if not config.seal_key_file:
        return [token]
    return [Secret(line) for line in _lines(Path(config.seal_key_file), "seal key")]


def hello_of_worker(token: Secret, nonce: str) -> str:
    """Return a worker's Authorization header."""
    return f"{SCHEME} {nonce} {_mac(token, 'worker', nonce)}"


def proof_of_master(token: Secret, nonce: str) -> str:
    """Return what a master answers to a worker's nonce."""
    return _mac(token, "master", nonce)


class Joining:
    """A master's side: whoever proves the token is let in, with each nonce once."""

    def __init__(self, token: Secret) -> None:
        self._token = token
        self._seen: OrderedDict[str, None] = OrderedDict()

    def nonce_of(self, header: str) -> str | None:
        """Return the nonce of a worker that knows the token, None for anybody else."""
        scheme, _, rest = header.partition(" ")
        nonce, _, mac = rest.partition(" ")
        if scheme != SCHEME or not 16 <= len(nonce) <= 128 or nonce in self._seen:
            return None
        if not hmac.compare_digest(mac.encode(), _mac(self._token, "worker", nonce).encode()):
            return None
        self._seen[nonce] = None
        while len(self._seen) > NONCES_KEPT:
            self._seen.popitem(last=False)
        return nonce

    def proof(self, nonce: str) -> str:
        """Return what shows the worker that this master knows the token too."""
        return proof_of_master(self._token, nonce)


def check_listen(config: Config) -> None:
    """Refuse to send tokens over a network that others may listen to."""
    host, _ = host_and_port(config)
    if config.tls_cert or config.insecure or _is_local(host):
        return
    raise UserError(
        f"This master would answer on {config.listen} without TLS: whoever sees the traffic would"
        " have the token. Give tls_cert and tls_key, listen on 127.0.0.1 behind a proxy, or say"
        " insecure: true if the network is private.",
        code="master.insecure",
    )


def client_tls(config: Config) -> ssl.SSLContext | None:
    """Return how this process trusts masters; None for the machine's own way."""
    if not config.tls_ca and not config.tls_client_cert:
        return None
    with _readable("tls_ca", config.tls_ca):
        context = ssl.create_default_context(cafile=config.tls_ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.tls_client_cert:
        with _readable("tls_client_cert", config.tls_client_cert):
            context.load_cert_chain(config.tls_client_cert, config.tls_client_key or None)
    return context


@contextmanager
def _readable(option: str, path: str) -> Iterator[None]:
    """Say which option names a file that is none, or holds no certificates."""
    try:
        yield
    except OSError as error:  # an SSLError is one, too
        said = error.strerror if not isinstance(error, ssl.SSLError) else "it holds no certificate"
        raise UserError(
            f"{option}: {path} cannot be used: {said}. Give a PEM file.", code="config.keys"
        ) from error


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _lines(path: Path, what: str) -> list[str]:
    try:
        lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except OSError as error:
        raise UserError(
            f"The {what} file {path} cannot be read: {error.strerror}.", code="config.keys"
        ) from error
    if not lines:
        raise UserError(f"The {what} file {path} is empty.", code="config.keys")
    return lines


def _mac(token: Secret, what: str, nonce: str) -> str:
    text = f"holdfast {what} v1 {nonce}"
    return hmac.digest(token.reveal().encode(), text.encode(), "sha256").hex()
