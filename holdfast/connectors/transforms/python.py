"""Python: a function of the user's own, from DataFrame to DataFrame.

It runs where the plan is built, once for each table, not once for each row: what it returns is part
of the one Spark plan.  It can do all that this process can, so it is off unless allowed.
"""

import importlib
import importlib.util
import inspect
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, ClassVar

from holdfast.connect.options import options
from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.errors import HoldfastError, UserError
from holdfast.model.table import Table
from holdfast.model.tree import Block, Plain, to_plain


@options
class PythonOptions:
    """Which function to call."""

    #: The function's name. It takes a DataFrame, or a DataFrame and `options`, and returns one.
    function: str
    file: str | None = None  #: The Python file it is in, as workers see it.
    module: str | None = None  #: The installed module it is in, in place of `file`.
    options: Block | None = None  #: Anything the function needs: given to it as a dictionary.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the options together."""
        if (self.file is None) == (self.module is None):
            yield "module", "give one of 'file' and 'module', not both."


class Python(Transform[PythonOptions]):
    """Calls a function of the user's own with the table's DataFrame."""

    name = "Python"

    needs_python: ClassVar[bool] = True
    """Refused unless the user allows Python in jobs."""

    def __init__(self, options: PythonOptions, context: PluginContext) -> None:
        if not context.allow_python:
            raise UserError(
                f"{context.stage}: Python in jobs is not allowed here. Run with --allow-python"
                " if you trust the job file and the code it names.",
                code="transform.python_not_allowed",
            )
        super().__init__(options, context)

    def apply(self, rows: Rows) -> Rows:
        """Return what the function makes of the table."""
        from pyspark.sql import DataFrame

        stage = self.context.stage
        with _Explained(stage, "cannot be loaded"):
            call = self._function()
        with _Explained(stage, f"failed on table {rows.table.path}"):
            made = call(rows.frame)
        if not isinstance(made, DataFrame):
            raise UserError(
                f"{stage}: function {self.options.function} returned {type(made).__name__},"
                " not a DataFrame. Return one."
            )
        lost = [h for h in rows.hidden if h not in made.columns]
        if lost:
            raise UserError(
                f"{stage}: function {self.options.function} dropped {', '.join(lost)} from table"
                f" {rows.table.path}, a changelog. Keep these columns: without them, updates and"
                " deletes would be written as new rows."
            )
        return rows.with_frame(made)

    def foresee(self, table: Table) -> Table | None:
        """Load the function; what it makes of the table only Spark can tell."""
        with _Explained(self.context.stage, "cannot be loaded"):
            self._function()
        return None

    def _function(self) -> Callable[[Any], object]:
        asked = self.options
        module = (
            _load_file(asked.file) if asked.file else importlib.import_module(asked.module or "")
        )
        found = getattr(module, asked.function, None)
        if not callable(found):
            where = asked.file or asked.module
            raise UserError(f"{self.context.stage}: {where} has no function {asked.function}.")
        if len(inspect.signature(found).parameters) < 2:
            return lambda frame: found(frame)
        given: Plain = to_plain(asked.options) if asked.options else {}
        return lambda frame: found(frame, given)


def _load_file(file: str) -> ModuleType:
    """Run a file as a module of its own.

    It is not registered by name, so that Spark ships functions of it to workers by value.
    """
    path = Path(file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UserError(f"Python file {file} does not exist or is no .py file. Check the path.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Explained:
    """Turns whatever the user's code raises into an error that says where in it.

    That code may raise anything, and all of it is the user's to mend.
    """

    def __init__(self, stage: str, what: str) -> None:
        self.stage = stage
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, HoldfastError):
            return
        place = _place(traceback.extract_tb(trace))
        said = traceback.format_exception_only(error)[-1].strip()
        raise UserError(
            f"{self.stage}: the Python function {self.what}: {said}"
            f" ({place.filename}, line {place.lineno})",
            code="transform.python_failed",
        ) from error


def _place(frames: traceback.StackSummary) -> traceback.FrameSummary:
    """Return the last line of the user's own code, below which a library may have failed."""
    theirs = [f for f in frames if f.filename != __file__ and not f.filename.startswith("<frozen")]
    if not theirs:
        return frames[-1]
    return next(f for f in reversed(theirs) if f.filename == theirs[0].filename)
