"""Read a job file into what a submit carries."""

from pathlib import Path

from holdfast.connect.checks import CheckReport
from holdfast.plan.load import parse_job
from holdfast.plan.record import JobSource, encode_spec


def spec_text(file: Path) -> str:
    """Return a job file as a submit carries it."""
    report = CheckReport()
    tree = parse_job(file.read_text(), str(file), {}, None, report)
    report.raise_if_any()
    assert tree is not None
    return encode_spec(JobSource(str(file), tree))
