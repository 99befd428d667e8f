"""What is said of a server whose certificate this machine does not trust: trying again does not
help."""

import re
import ssl

from holdfast.connectors.jdbc.address import Address
from holdfast.errors import UserError

CERTIFICATE = "sink.certificate"
"""The code of an error about a certificate, which says by itself what mends it."""

_UNTRUSTED = re.compile(
    r"certificate verify failed(?:: ([^(]*))?|(server certificate for \S+ .*does not match[^(]*)",
    re.IGNORECASE,
)


def untrusted(address: Address, said: str, option: str) -> UserError | None:
    """Return the error for a certificate that is refused, if that is what the driver said.

    `option` is what names the file of the authority.
    """
    found = _UNTRUSTED.search(said)
    if not found:
        return None
    why = " ".join((found[1] or found[2] or "").split())
    return UserError(
        f"the certificate of {address.shown} is not trusted{f' ({why})' if why else ''}. Name the"
        f" file of the authority that signed it with {option} in the url or in properties, or have"
        " the server show one for this host.",
        code=CERTIFICATE,
    )


def authority(path: str | None, option: str) -> ssl.SSLContext:
    """Return how to trust what the authority in a file has signed; None is the machine's own."""
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # an SSLError is one, too
        none = isinstance(error, ssl.SSLError)
        said = "it holds no certificate" if none else error.strerror
        raise UserError(
            f"{option}: {path} cannot be used: {said}. Give a PEM file.", code=CERTIFICATE
        ) from error
