"""Load a library that only one connector needs, and say how to get it where it is missing."""

import importlib
from typing import Any

from holdfast.errors import UserError


def load_library(module: str, connector: str, extra: str) -> Any:
    """Return a module of an optional library; UserError that names the extra if there is none."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise UserError(
            f"{connector} needs the library {module.partition('.')[0]}, which is not installed."
            f" Install it where masters and workers run: pip install 'holdfast[{extra}]'.",
            code="connector.extra",
        ) from error
