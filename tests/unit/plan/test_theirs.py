"""Unknown options: a warning in a file that comes as SeaTunnel's, a mistake in one of ours."""

from pathlib import Path

import pytest
from parse_texts import job

from holdfast.cli.run import report_for
from holdfast.connect.checks import CheckReport
from holdfast.connect.options import LACKS, describe
from holdfast.connect.registry import Registry
from holdfast.errors import JobFileError
from holdfast.model.job import Role
from holdfast.plan.record import JobSource

REGISTRY = Registry.load()
ROWS = "FakeSource { schema { fields { a = int } } }"
PRINT = "Console { }"


def said(source: str = ROWS, sink: str = PRINT, *, lenient: bool) -> tuple[list[str], list[str]]:
    """Return the mistakes and the warnings of a job."""
    report = CheckReport(lenient=lenient)
    tree = job(f"env {{ job.mode = BATCH }}\nsource {{ {source} }}\nsink {{ {sink} }}")
    try:
        JobSource("job.conf", tree).job(REGISTRY, report)
    except JobFileError as error:
        return [m.message for m in error.mistakes], [w.message for w in error.warnings]
    return [], [w.message for w in report.warnings]


@pytest.mark.parametrize("lenient", [True, False])
def test_an_unknown_option_has_the_nearest_name_and_is_a_warning_or_a_mistake(
    lenient: bool,
) -> None:
    mistakes, warnings = said(
        "FakeSource { row.nun = 3, schema { fields { a = int } } }", lenient=lenient
    )
    found = warnings if lenient else mistakes
    assert len(mistakes) + len(warnings) == 1
    assert "unknown option 'row.nun'. Did you mean 'row.num'?" in found[0]


def test_a_file_by_seatunnels_flag_is_lenient_and_one_by_our_argument_is_not() -> None:
    assert report_for(Path("job.conf"), False, False).lenient
    assert not report_for(None, False, False).lenient
    assert report_for(None, True, False).lenient


@pytest.mark.parametrize("lenient", [True, False])
def test_what_seatunnel_has_and_we_lack_is_refused_both_ways(lenient: bool) -> None:
    sink = 'LocalFile { path = "/tmp/x", file_format_type = csv, archive_compress_codec = zip }'
    mistakes, _ = said(sink=sink, lenient=lenient)
    assert mistakes == [
        "sink LocalFile: Holdfast has no option 'archive_compress_codec'."
        " Files are packed one by one: use compress_codec."
    ]


@pytest.mark.parametrize("lenient", [True, False])
def test_a_dotted_one_that_we_lack_is_refused_as_a_block_too(lenient: bool) -> None:
    sink = (
        'Paimon { warehouse = "/tmp/x", database = d, table = t,'
        " dynamic-bucket { target-row-num = 5 } }"
    )
    mistakes, _ = said(sink=sink, lenient=lenient)
    assert mistakes == [
        "sink Paimon: Holdfast has no option 'dynamic-bucket.target-row-num'."
        f" {LACKS['sink Paimon']['dynamic-bucket.target-row-num']}"
    ]


@pytest.mark.parametrize("about", LACKS)
def test_what_is_listed_as_lacking_is_lacking(about: str) -> None:
    role, name = about.split()
    kind = REGISTRY.find(Role(role), name)
    assert kind, f"{about} is no plug-in"
    ours = {key for info in describe(kind.options_class) for key in (info.key, *info.aliases)}
    assert not ours & LACKS[about].keys()
    assert all(advice.endswith(".") for advice in LACKS[about].values())


def test_a_record_is_read_without_a_word_once_its_job_was_checked() -> None:
    tree = job(f"source {{ {ROWS} }}\nsink {{ Console {{ colour = red, use_kerberos = true }} }}")
    report = CheckReport(settled=True)
    assert JobSource("job.conf", tree, lenient=True).job(REGISTRY, report)
    assert not report.mistakes
