"""Who lacks a right, in words."""

import os
import pwd


def user() -> str:
    """Return the name of this process's user; the number of one who has none, as in containers.

    The environment (USER) may name another one.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def may_not(verb: str, what: object) -> str:
    """Say that this process's user may not do something."""
    return f"permission denied: user {user()} may not {verb} {what}"
