"""What the logs say of staged files and commits, for scenarios to wait for and to claim."""

from collections import defaultdict

from tests.chaos.engine.scene import Scene
from tests.chaos.engine.tail import Facts


def made_by(process: str, name: str) -> bool:
    """Say whether a process of the logs, `W1#f3...`, is an incarnation of a name, `W1`."""
    return process.partition("#")[0] == name


def fresh(ack: Facts) -> list[str]:
    """Return the files that an answer to a barrier tells of for the first time."""
    return [file for created, _, file in ack["staged"] if created == ack["number"]]


def published(s: Scene, name: str = "j") -> dict[str, set[int]]:
    """Return the files that leaders have begun to make visible, and under which numbers."""
    found: dict[str, set[int]] = defaultdict(set)
    for event in _commits(s, "publish", name):
        for file in event["files"]:
            found[file].add(int(event["number"]))
    return found


def snapshots(s: Scene, name: str = "j") -> list[Facts]:
    """Return the commits that were made, in order of time."""
    return _commits(s, "snapshot", name)


def users(s: Scene, name: str = "j") -> set[str]:
    """Return the users that a job's commits were made for."""
    return {str(e["user"]) for e in _commits(s, "publish", name)}


def once(s: Scene) -> None:
    """Claim that no file was ever to be committed under two numbers, and that numbers only grow."""
    for name in s.jobs:
        twice = {f: n for f, n in published(s, name).items() if len(n) > 1}
        s.claim(not twice, f"files under several numbers: {list(twice.items())[:2]}")
        for table in {e["table"] for e in snapshots(s, name)}:
            firsts: dict[tuple[str, int], None] = {}
            for event in [e for e in snapshots(s, name) if e["table"] == table]:
                firsts[(event["user"], event["number"])] = None
            for user in {u for u, _ in firsts}:
                numbers = [n for u, n in firsts if u == user]
                s.claim(numbers == sorted(numbers), f"commits out of order: {numbers}")


def never(s: Scene, files: list[str], whose: str) -> None:
    """Prove that there were such files, and claim that no leader has begun to commit them."""
    s.prove(files, f"nothing was staged by {whose}")
    shown = sorted(set(files) & set(published(s)))
    s.claim(not shown, f"files of {whose} were committed: {shown[:2]}")


def _commits(s: Scene, kind: str, name: str) -> list[Facts]:
    job = s.jobs[name].id
    return [e for e in s.events(kind) if str(e["user"]).split(".")[0] == job]
