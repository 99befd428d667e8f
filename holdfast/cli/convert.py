"""The verb that rewrites a job file in today's names."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.flags import Debug, PluginFiles
from holdfast.cli.job_file import include, read_bytes, read_tree
from holdfast.cli.terminal import screen, show_warnings
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.model.tree import Block
from holdfast.plan.check import check_job
from holdfast.plan.load import decode_job, parse_job
from holdfast.plan.modern_names import Rewritten, rewritten


def convert(
    file: Annotated[Path, typer.Argument(metavar="JOB_FILE", help="The file to rewrite.")],
    write: Annotated[
        bool, typer.Option("--write", "-w", help="Change the file itself; without it, print it.")
    ] = False,
    plugin: PluginFiles = [],  # noqa: B006
    debug: Debug = False,
) -> None:
    """Rewrite an old job file in today's names; all else stays as it is."""
    registry = Registry.load(plugin)
    report = CheckReport(lenient=True, allow_unset=True)
    tree = read_tree(file, {}, report)
    text = decode_job(read_bytes(file), str(file))
    done = rewritten(text, str(file), tree, registry)
    again = _parsed(done, file)
    for one in done.renamed:
        screen.print(str(one), markup=False, soft_wrap=True)
    check_job(again, str(file), registry, report)
    show_warnings([*done.left, *report.mistakes, *report.warnings])
    names = len(done.renamed)
    said = f"{names} name{'s' * (names != 1)} changed."
    if write and names:
        file.write_text(done.text, encoding="utf-8", newline="")
        said = f"{file} is rewritten: {said}"
    elif not write:
        typer.echo(done.text, nl=False)
    screen.print(said, markup=False, soft_wrap=True)


def _parsed(done: Rewritten, file: Path) -> Block:
    """Parse the new text; a file that does not parse is not written."""
    again = parse_job(done.text, str(file), {}, include, CheckReport(allow_unset=True))
    assert again is not None, f"{file} was rewritten so that it does not parse"
    return again
