"""SeaTunnel's flags become our verbs."""

import pytest

from holdfast.cli.seatunnel import translated
from holdfast.errors import UsageError


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("-l", "list"),
        ("--list -m cluster", "list"),
        ("-j 17", "status 17"),
        ("--metrics 17", "status 17"),
        ("-can 17 18", "cancel 17 18"),
        ("-f 17", "cancel --force 17"),
        ("--get_running_job_metrics", "list"),
        ("-s 17", "savepoint 17"),
        ("-r 17 -c job.conf", "restore 17 -c job.conf"),
        ("-c job.conf -r 17", "restore 17 -c job.conf"),
        ("-c job.conf -m cluster --async", "submit -c job.conf --async"),
        ("-cn mine -c job.conf -e cluster -i a=b", "submit -c job.conf -i a=b"),
        ("-c job.conf -m local", "run -c job.conf"),
        ("-c job.conf -m cluster --check", "check -c job.conf"),
        ("-c job.conf -e cluster --set-job-id 17 -cj", "submit -c job.conf --set-job-id 17 -cj"),
        ("--config job.conf", "run --config job.conf"),
        ("--version", "--version"),
        ("-h", "-h"),
        ("run -c job.conf -m local", "run -c job.conf -m local"),
        ("", ""),
    ],
)
def test_flags_become_verbs(given: str, ours: str) -> None:
    assert translated(given.split()) == ours.split()


def test_a_place_to_run_that_is_not_known() -> None:
    with pytest.raises(UsageError, match="say local or cluster"):
        translated(["-c", "job.conf", "-m", "moon"])


@pytest.mark.parametrize(
    ("flag", "instead"),
    [
        ("--encrypt", "-i or from the environment"),
        ("--decrypt", "nothing to decrypt"),
        ("--dry-run", "holdfast check"),
        ("--restore-with-checkpoint", "holdfast restore"),
    ],
)
def test_a_flag_without_a_meaning_says_what_to_do_instead(flag: str, instead: str) -> None:
    with pytest.raises(UsageError, match=instead):
        translated(["-c", "job.conf", flag, "17"])
