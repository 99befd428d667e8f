"""The verb about a master's audit log: find out whether anyone has changed it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast.api.audit import broken_at
from holdfast.cli.flags import Debug
from holdfast.cli.job_file import read_bytes
from holdfast.errors import UserError

Action = Annotated[Literal["verify"], typer.Argument(metavar="verify", help="What to do.")]
LogFile = Annotated[Path, typer.Argument(metavar="FILE", help="The audit log of a master.")]


def audit(action: Action, file: LogFile, debug: Debug = False) -> None:
    """Check that no line of an audit log was changed or taken out: audit verify FILE."""
    count = len(read_bytes(file, "log file").splitlines())
    broken = broken_at(file)
    if broken:
        raise UserError(
            f"{file}: line {broken} does not follow from the line before it, so one of the two was"
            " changed, or a line between them was taken out. Compare the file with a copy kept"
            " elsewhere.",
            code="audit.broken",
        )
    typer.echo(f"{file}: {count} lines, and each follows from the one before.")
