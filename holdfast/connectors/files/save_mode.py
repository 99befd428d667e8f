"""What a sink's folder must be like before the first row, and what the save modes do to it."""

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from holdfast.connect.plugin import problems_of
from holdfast.connect.rights import may_not
from holdfast.connectors.files.opening import HIDDEN, Mode, find, has_data
from holdfast.connectors.files.sink_options import (
    DataSaveMode,
    LocalFileSinkOptions,
    SchemaSaveMode,
)
from holdfast.connectors.lake.location import Location, refuse_unwritable
from holdfast.errors import UserError

TRIES = 3


def mode_of(options: LocalFileSinkOptions) -> Mode | None:
    """Return what the first commit does to the folder; None if it only adds files."""
    if options.data_save_mode is DataSaveMode.ERROR_WHEN_DATA_EXISTS:
        return "empty"
    anew = options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
    return "clear" if anew or options.data_save_mode is DataSaveMode.DROP_DATA else None


def prepare_folder(options: LocalFileSinkOptions, life: str, new: bool) -> None:
    """Make sure that the folder can be written, and make it if it is missing.

    What the save modes forbid is looked for if the folder is `new` to the job.  Nothing in it is
    changed.  Raises UserError where the job cannot run.
    """
    root = Path(options.root)
    _refuse_root(root, options)
    try:
        if new:
            _check_modes(root, options, life)
        root.mkdir(parents=True, exist_ok=True)
        _try_to_write(root)
    except OSError as error:
        raise UserError(
            f"LocalFile cannot write to {root}: {_why(error, root)}", code="sink.path_unwritable"
        ) from error


def _why(error: OSError, root: Path) -> str:
    if not isinstance(error, PermissionError):
        return f"{error.strerror or error}. Check option path."
    asked = Path(error.filename or root)
    there = next(p for p in (asked, *asked.parents) if os.path.lexists(p))
    return f"{may_not('write to', there)}. Give that user the right, or give another path."


def look_at_folder(options: LocalFileSinkOptions) -> Iterator[str]:
    """Yield why the folder cannot be made or written; nothing is made."""
    root = Path(options.root)
    yield from problems_of(
        partial(_refuse_root, root, options),
        partial(_check_readable, root, options),
        partial(refuse_unwritable, "LocalFile", Location(str(root))),
    )


def _check_readable(root: Path, options: LocalFileSinkOptions) -> None:
    """Raise UserError for what the save modes forbid, or if nobody can tell."""
    try:
        _check_modes(root, options, "")
    except OSError as error:
        raise UserError(
            f"LocalFile cannot list {root}: {error.strerror or error}. Check who may read it.",
            code="sink.path_unwritable",
        ) from error


def _refuse_root(root: Path, options: LocalFileSinkOptions) -> None:
    if root.resolve() == Path(root.anchor):
        raise UserError(
            f"LocalFile will not write to {options.path}: that is the whole machine."
            " Name a folder for this sink alone.",
            code="sink.path_refused",
        )


def _check_modes(root: Path, options: LocalFileSinkOptions, life: str) -> None:
    if options.schema_save_mode is SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST and not root.is_dir():
        raise UserError(
            f"LocalFile cannot write to {root}: the folder does not exist, and schema_save_mode"
            " is ERROR_WHEN_SCHEMA_NOT_EXIST. Create it, or choose another mode.",
            code="sink.schema_missing",
        )
    # What is there may be this life's own, through another sink: in that order.
    if mode_of(options) == "empty" and has_data(root) and find(root, life) is None:
        raise data_exists(root)


def data_exists(root: Path) -> UserError:
    """Return the error for a folder that should have been empty."""
    return UserError(
        f"LocalFile will not write to {root}: there are files in it, and data_save_mode is"
        " ERROR_WHEN_DATA_EXISTS. Empty it, or choose APPEND_DATA or DROP_DATA.",
        code="sink.data_exists",
    )


def _try_to_write(root: Path) -> None:
    hidden = root / HIDDEN
    for left in reversed(range(TRIES)):
        hidden.mkdir(exist_ok=True)
        try:
            with tempfile.TemporaryFile(dir=hidden):
                return
        except FileNotFoundError:
            # Another job has just swept up and removed the folder because it was empty.
            if not left:
                raise
