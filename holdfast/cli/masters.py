"""Which masters a verb asks, and with which token."""

import os

from holdfast.client import Client
from holdfast.config import load_config
from holdfast.security.identity import client_tls, client_token


def client_for(
    masters: str | None, node_config: str | None, token_file: str | None, patience_s: float
) -> Client:
    """Return a client as flags, environment and file say."""
    flags = {"masters": masters, "token_file": token_file}
    given = {name: value for name, value in flags.items() if value}
    config = load_config(given, os.environ, node_config).config
    token = client_token(config)
    return Client(config.masters, token, patience_s, tls=client_tls(config))
