"""The secrets of a node: the cluster's token, the join token, and what seals job files.

Each comes from an option, from a file that an option names, or is derived from the cluster's token.
"""

import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.config import Config, cluster_folder
from holdfast.errors import UserError
from holdfast.model.secret import Secret
from holdfast.security.identity import is_local, mac


def find_token(config: Config, *, create: bool) -> Secret:
    """Return the shared secret.  `create`: make the default file if there is none."""
    if config.token:
        return config.token
    path = Path(config.token_file)
    try:
        if create and path == cluster_folder() / "token":
            _create_token(path)
        token = path.read_text().strip()
    except OSError as error:
        raise UserError(
            f"The token file {path} cannot be read: {error.strerror}. Start a master on this"
            " machine first, or give token_file (or HOLDFAST_TOKEN) as the masters have it.",
            code="config.token",
        ) from error
    if not token:
        raise UserError(f"The token file {path} is empty. Write the masters' token into it.")
    return Secret(token)


def first_time(config: Config) -> bool:
    """Say whether the token that was created here has not been shown yet; it is from now on."""
    path = Path(config.token_file)
    if config.token or path != cluster_folder() / "token":
        return False
    try:
        os.close(os.open(path.with_name("token_shown"), os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def _create_token(path: Path) -> None:
    """Create a token that only this user reads; a second process finds the first one's."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".token-{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
    finally:
        fresh.unlink()


def join_token(config: Config, *, create: bool) -> Secret:
    """Return the token with which workers join; derived from the cluster's where none is given."""
    if config.join_token:
        return config.join_token
    if config.join_token_file:
        return Secret(_lines(Path(config.join_token_file), "join token")[0])
    token = find_token(config, create=create)
    return Secret(mac(token, "join token", ""))


def client_token(config: Config) -> Secret:
    """Return the token with which a cluster is asked.

    Where all masters are this machine's own, a client may be the first that needs it: after
    `holdfast master & holdfast submit` the token must be there.
    """
    own = all(is_local(urlsplit(url).hostname or "") for url in config.masters)
    return find_token(config, create=own)


def seal_secrets(config: Config, token: Secret) -> list[Secret]:
    """Return what job files are sealed with: the first for new ones, all to open old ones."""
    if not config.seal_key_file:
        return [token]
    return [Secret(line) for line in _lines(Path(config.seal_key_file), "seal key")]


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
