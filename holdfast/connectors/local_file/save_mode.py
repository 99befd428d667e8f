"""What happens to a sink's folder once, before the first row."""

import os
import shutil
import tempfile
from pathlib import Path

from holdfast.connectors.local_file.commit import HIDDEN
from holdfast.connectors.local_file.sink_options import (
    DataSaveMode,
    LocalFileSinkOptions,
    SchemaSaveMode,
)
from holdfast.errors import UserError

TRIES = 3


def prepare_folder(options: LocalFileSinkOptions) -> None:
    """Apply the save modes and make sure that the folder can be written.

    Only what lies inside the folder is ever removed.  Raises UserError where the job cannot run.
    """
    root = Path(options.root)
    if root.resolve() == Path(root.anchor):
        raise UserError(
            f"LocalFile will not write to {options.path}: that is the whole machine."
            " Name a folder for this sink alone.",
            code="sink.path_refused",
        )
    try:
        _check_modes(root, options)
        if SchemaSaveMode.RECREATE_SCHEMA is options.schema_save_mode or (
            options.data_save_mode is DataSaveMode.DROP_DATA
        ):
            _clear(root)
        root.mkdir(parents=True, exist_ok=True)
        _try_to_write(root)
    except OSError as error:
        raise UserError(
            f"LocalFile cannot write to {root}: {error.strerror or error}."
            " Check option path and who may write there.",
            code="sink.path_unwritable",
        ) from error


def _check_modes(root: Path, options: LocalFileSinkOptions) -> None:
    if options.schema_save_mode is SchemaSaveMode.ERROR_WHEN_SCHEMA_NOT_EXIST and not root.is_dir():
        raise UserError(
            f"LocalFile cannot write to {root}: the folder does not exist, and schema_save_mode"
            " is ERROR_WHEN_SCHEMA_NOT_EXIST. Create it, or choose another mode.",
            code="sink.schema_missing",
        )
    if options.data_save_mode is DataSaveMode.ERROR_WHEN_DATA_EXISTS and _has_data(root):
        raise UserError(
            f"LocalFile will not write to {root}: there are files in it, and data_save_mode is"
            " ERROR_WHEN_DATA_EXISTS. Empty it, or choose APPEND_DATA or DROP_DATA.",
            code="sink.data_exists",
        )


def _has_data(root: Path) -> bool:
    return any(files for folder, _, files in os.walk(root) if HIDDEN not in Path(folder).parts)


def _clear(root: Path) -> None:
    """Remove what is in a folder; what other jobs have staged there is no data and stays."""
    if not root.is_dir():
        return
    for entry in os.scandir(root):
        if entry.name == HIDDEN:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


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
