"""What can be wrong with the URL of a master, and with the certificate of its answer."""

import re
from urllib.parse import urlsplit

_UNTRUSTED = re.compile(r"certificate verify failed: ([^(]+)", re.IGNORECASE)
_NOT_TRUSTED = "its certificate is not trusted"


def url_problem(url: str) -> str | None:
    """Return what is wrong with a master's URL; None if nothing is."""
    if any(c.isspace() for c in url):
        return " (it has a blank inside; put a comma between two URLs)"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f" ({str(error).rstrip('.')})"
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return ""
    if parts.path.strip("/") or parts.query or parts.fragment:
        return " (there is more after the port)"
    return None


def untrusted(said: str) -> str:
    """Return why a certificate is not trusted, if that is the error; waiting does not help."""
    found = _UNTRUSTED.search(said)
    if not found:
        return said if said.startswith(_NOT_TRUSTED) else ""
    return (
        f"{_NOT_TRUSTED} ({found[1].strip()}). Name the file of the authority that signed it with"
        " tls_ca (HOLDFAST_TLS_CA), or have the master show one for this host"
    )
