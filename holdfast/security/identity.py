"""Who talks with whom: how workers and masters prove themselves to each other, and TLS.

A worker and a master prove to each other that they know the join token without either sending it: a
stranger that took over an address learns nothing and is not believed.
"""

import hmac
import ipaddress
import ssl
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.config import Config, host_and_port
from holdfast.errors import UserError
from holdfast.model.secret import Secret

SCHEME = "Join"
NONCE, PROOF = "holdfast-nonce", "holdfast-proof"
NONCES_KEPT = 100_000


def hello_of_worker(token: Secret, nonce: str) -> str:
    """Return a worker's Authorization header."""
    return f"{SCHEME} {nonce} {mac(token, 'worker', nonce)}"


def proof_of_master(token: Secret, nonce: str) -> str:
    """Return what a master answers to a worker's nonce."""
    return mac(token, "master", nonce)


class Joining:
    """A master's side: a worker that proves the token is let in, with each nonce once."""

    def __init__(self, token: Secret) -> None:
        self._token = token
        self._seen: OrderedDict[str, None] = OrderedDict()

    def nonce_of(self, header: str) -> str | None:
        """Return the nonce of a worker that knows the token, None for anybody else."""
        scheme, _, rest = header.partition(" ")
        nonce, _, shown = rest.partition(" ")
        if scheme != SCHEME or not 16 <= len(nonce) <= 128 or nonce in self._seen:
            return None
        if not hmac.compare_digest(shown.encode(), mac(self._token, "worker", nonce).encode()):
            return None
        self._seen[nonce] = None
        while len(self._seen) > NONCES_KEPT:
            self._seen.popitem(last=False)
        return nonce

    def proof(self, nonce: str) -> str:
        """Return what shows the worker that this master knows the token too."""
        return proof_of_master(self._token, nonce)


def check_listen(config: Config) -> None:
    """Refuse to send tokens over a network that others may read."""
    host, _ = host_and_port(config)
    if config.tls_cert or config.insecure or is_local(host):
        return
    raise UserError(
        f"This master would answer on {config.listen} without TLS: anyone who sees the traffic"
        " would have the token. Give tls_cert and tls_key, listen on 127.0.0.1 behind a proxy, or"
        " say insecure: true if the network is private.",
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


def is_local(host: str) -> bool:
    """Say whether a host is this machine under an address that no other machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def mac(token: Secret, what: str, nonce: str) -> str:
    """Return what only someone who knows the token can make of a purpose and a nonce."""
    text = f"holdfast {what} v1 {nonce}"
    return hmac.digest(token.reveal().encode(), text.encode(), "sha256").hex()
