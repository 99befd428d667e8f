"""Find plug-ins by name.

Connectors are found, not listed: every module or package under the entry-point group
`holdfast.connectors` is loaded, as is every file a user names, and each plug-in class with a name
in it is registered.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.connect.plugin import Plugin
from holdfast.errors import UserError
from holdfast.model.job import Role

GROUP = "holdfast.connectors"


class Registry:
    """All plug-ins known to this process, by role and name in any case."""

    def __init__(self) -> None:
        self._found: dict[tuple[Role, str], type[Plugin[Any]]] = {}

    @classmethod
    def load(cls, extra: Iterable[str] = ()) -> "Registry":
        """Return a registry of every installed connector and of those in the named files."""
        registry = cls()
        for point in entry_points(group=GROUP):
            registry.add(point.load())
        for name in extra:
            registry.add(_import(name))
        return registry

    def add(self, module: ModuleType) -> None:
        """Register every plug-in of a module and of the modules below it."""
        if hasattr(module, "__path__"):
            for below in pkgutil.iter_modules(module.__path__, module.__name__ + "."):
                self.add(importlib.import_module(below.name))
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Plugin) and "name" in vars(value):
                self._found.setdefault((value.role, value.name.lower()), value)

    def find(self, role: Role, name: str) -> type[Plugin[Any]] | None:
        """Return the plug-in of that role and name, or None."""
        return self._found.get((role, name.lower()))

    def names(self, role: Role) -> list[str]:
        """Return the names of all plug-ins of a role, sorted."""
        return sorted(p.name for (r, _), p in self._found.items() if r is role)

    def named(self, name: str) -> list[type[Plugin[Any]]]:
        """Return the plug-ins of any role with that name, sources first."""
        return [p for role in Role if (p := self.find(role, name))]


def _import(name: str) -> ModuleType:
    """Load a module by name, or a file by path."""
    path = Path(name)
    if path.suffix != ".py":
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UserError(f"Plug-in module {name} cannot be loaded: {error}.") from error
    if not path.is_file():
        raise UserError(f"Plug-in file {name} does not exist. Check the path given with --plugin.")
    # Spark's Python workers must be able to import what a user's functions refer to.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(path.stem)
