"""The verbs that take a job file: run, plan.  Their options, and a check on this machine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast.cli.flags import Debug
from holdfast.cli.job_file import drafted, read_tree, spark_settings, tags
from holdfast.cli.launch import Launch, launch
from holdfast.cli.terminal import screen, show_warnings
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import UsageError
from holdfast.files import state_dir
from holdfast.model.tree import Block
from holdfast.plan.foresee import foresee
from holdfast.plan.show import draw_mermaid, draw_text, plan_json
from holdfast.plan.variables import parse_assignments
from holdfast.spark import session as driver
from holdfast.worker.connect import look_at_places
from holdfast.worker.expect import expected_tables, look_at_sinks

JobFile = Annotated[Path | None, typer.Argument(metavar="JOB_FILE", help="The job file to use.")]
Config = Annotated[
    Path | None,
    typer.Option("-c", "--config", help="The job file, read as SeaTunnel reads it (--lenient)."),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "-i", "--variable", metavar="KEY=VALUE", help="Fill ${KEY} in the job file; repeatable."
    ),
]
Lenient = Annotated[
    bool,
    typer.Option("--lenient", help="Warn of unknown options and ignore them, as -c does."),
]
AllowUnset = Annotated[
    bool,
    typer.Option("--allow-unset", help="Keep ${name} where nothing says what it is."),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", metavar="FILE", help="Load connectors from a .py file or a module."),
]
AllowPython = Annotated[
    bool,
    typer.Option(
        "--allow-python",
        envvar="HOLDFAST_ALLOW_PYTHON",
        help="Let the Python transform run functions that the job file names.",
    ),
]
Name = Annotated[str | None, typer.Option("-n", "--name", help="The job's name, over job.name.")]
Master = Annotated[
    str, typer.Option("-m", "--master", "-e", "--deploy-mode", help="Where to run: local.")
]
CheckOnly = Annotated[bool, typer.Option("--check", help="Check the file and stop.")]
JobId = Annotated[str | None, typer.Option("--set-job-id", help="Use this id, not a new one.")]
Cores = Annotated[
    int | None, typer.Option("--cores", min=1, help="Spark's local cores; all by default.")
]
Slots = Annotated[
    int | None, typer.Option("--slots", min=0, help="Refuse jobs that need more parallel readers.")
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="KEY=VALUE", help="A tag this worker carries; repeatable."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show no progress.")]
LogFormat = Annotated[
    Literal["text", "json"], typer.Option("--log-format", help="What the terminal gets.")
]
LogFile = Annotated[Path | None, typer.Option("--log-file", help="Where the log goes.")]
Form = Annotated[Literal["text", "mermaid", "json"], typer.Option("--format", help="How to draw.")]
Schemas = Annotated[bool, typer.Option(help="Ask Spark for the tables and columns of every stage.")]


def run(
    file: JobFile = None,
    config: Config = None,
    variable: Variables = None,
    name: Name = None,
    master: Master = "local",
    check_only: CheckOnly = False,
    job_id: JobId = None,
    cores: Cores = None,
    slots: Slots = None,
    tag: Tags = None,
    plugin: Plugins = None,
    lenient: Lenient = False,
    allow_unset: AllowUnset = False,
    allow_python: AllowPython = False,
    quiet: Quiet = False,
    log_format: LogFormat = "text",
    log_file: LogFile = None,
    debug: Debug = False,
) -> None:
    """Run a job file to its end, in this process."""
    if master.lower() not in ("local", "client"):
        raise UsageError(f"run --master {master}: run is local; for a cluster use holdfast submit.")
    if check_only:
        path, report = one_file(file, config), report_for(config, lenient, allow_unset)
        tree = read_tree(path, parse_assignments(variable or []), report)
        check_here(path, tree, report, plugin or [], allow_python=allow_python, connect=False)
        return
    code = launch(
        Launch(
            file=one_file(file, config),
            variables=parse_assignments(variable or []),
            name=name,
            job_id=job_id,
            cores=cores,
            slots=slots,
            tags=tags(tag or []),
            plugins=plugin or [],
            lenient=lenient or bool(config),
            allow_unset=allow_unset,
            allow_python=allow_python,
            quiet=quiet,
            json_log=log_format == "json",
            box=config is not None,
            log_file=log_file,
        )
    )
    if code:
        raise typer.Exit(code)


def check_here(
    path: Path, tree: Block, report: CheckReport, plugins: list[str], *, allow_python: bool,
    connect: bool,
) -> None:  # fmt: skip
    """Check a job on this machine, and tell what is wrong; open what it names if asked."""
    registry = Registry.load(plugins)
    job, broken = drafted(tree, path, registry, report, allow_python=allow_python)
    if connect:
        starting = driver.begin(spark_settings(tree), None, state_dir.logs() / "check.spark.log")
        try:
            look_at_places(
                job, registry, starting.session, report, allow_python=allow_python, broken=broken
            )
        finally:
            driver.stop(starting)
        report.raise_if_any()
        show_warnings(report.warnings)
        screen.print(f"{path}: no mistakes found; all that it names can be opened.", markup=False)
        return
    seen = foresee(job, registry, report, allow_python=allow_python, broken=broken)
    report.raise_if_any()
    show_warnings(report.warnings)
    screen.print(f"{path}: no mistakes found.", markup=False)
    if unknown := seen.unknown(job):
        screen.print(
            f"Only Spark can tell what leaves {', '.join(unknown)}, so what comes after was not"
            f" checked against it. To have Spark look: holdfast check --connect {path}",
            markup=False,
        )


def plan(
    file: JobFile = None,
    config: Config = None,
    variable: Variables = None,
    form: Form = "text",
    schemas: Schemas = True,
    plugin: Plugins = None,
    lenient: Lenient = False,
    allow_unset: AllowUnset = False,
    allow_python: AllowPython = False,
    debug: Debug = False,
) -> None:
    """Draw a job's pipelines, tasks, tables and schemas.  No row moves."""
    path, report = one_file(file, config), report_for(config, lenient, allow_unset)
    tree = read_tree(path, parse_assignments(variable or []), report)
    registry = Registry.load(plugin or [])
    job, broken = drafted(tree, path, registry, report, allow_python=allow_python)
    if schemas:
        foresee(job, registry, report, allow_python=allow_python, broken=broken)
    report.raise_if_any()
    show_warnings(report.warnings)
    tables = None
    if schemas:
        starting = driver.begin(spark_settings(tree), None, state_dir.logs() / "plan.spark.log")
        try:
            session = starting.session()
            tables = expected_tables(job, registry, session, allow_python=allow_python)
            for stage, error in look_at_sinks(job, registry, tables):
                report.error(stage.place, str(error))
            report.raise_if_any()
        finally:
            driver.stop(starting)
    draw = {"text": draw_text, "mermaid": draw_mermaid, "json": plan_json}[form]
    typer.echo(draw(job, registry, tables))


def report_for(config: Path | None, lenient: bool, allow_unset: bool) -> CheckReport:
    """Return a report for a job file; one that comes by SeaTunnel's flag is read as there."""
    return CheckReport(lenient=lenient or bool(config), allow_unset=allow_unset)


def one_file(file: Path | None, config: Path | None) -> Path:
    """Return the job file, given as an argument or with -c."""
    found = file or config
    if found is None or (file and config):
        raise UsageError("Give one job file: holdfast run JOB_FILE (or -c JOB_FILE).")
    return found
