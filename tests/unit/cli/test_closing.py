"""What a run names as the next steps."""

from pathlib import Path

from holdfast.cli.closing import steps_after_run
from holdfast.cli.launch import Launch


def commands(asked: Launch) -> list[str]:
    return [command for command, _ in steps_after_run(asked)]


def test_a_step_takes_the_file_as_the_run_took_it() -> None:
    file = Path("my job.conf")
    assert commands(Launch(file)) == [
        f"holdfast {verb} 'my job.conf'" for verb in ("plan", "run", "submit")
    ]
    theirs = Launch(file, lenient=True, box=True)  # a dead option is a mistake by our own argument
    assert commands(theirs)[1] == "holdfast run -c 'my job.conf'"
    given = Launch(
        Path("job.conf"), variables={"DAY": "1", "PASSWORD": "hush"}, plugins=["mine.py"],
        allow_python=True,
    )  # fmt: skip
    assert commands(given)[1:] == [
        "holdfast run job.conf -i DAY=... -i PASSWORD=... --allow-python --plugin mine.py",
        "holdfast submit job.conf -i DAY=... -i PASSWORD=... --allow-python",
    ]
