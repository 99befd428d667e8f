"""Load a library that only one connector needs, and say how to get it where it is missing."""

import importlib
import importlib.util
from typing import Any

from holdfast.errors import UserError


def need_library(module: str, connector: str, extra: str, of: str = "holdfast") -> None:
    """Raise UserError that names the extra if a library is not here; it is not loaded."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, connector, extra, of)


def load_library(module: str, connector: str, extra: str) -> Any:
    """Return a module of an optional library; UserError that names the extra if there is none."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise _missing(module, connector, extra) from error


def _missing(module: str, connector: str, extra: str, of: str = "holdfast") -> UserError:
    return UserError(
        f"{connector} needs the library {module.partition('.')[0]}, which is not installed."
        f" Install it where masters and workers run: pip install '{of}[{extra}]'.",
        code="connector.extra",
    )
