"""SeaTunnel's command line, where it has a meaning here: flags become verbs.

`seatunnel.sh -l` is `holdfast list`, and `holdfast -l` means the same; likewise for -can, -s, -r,
-j and -c.  A flag that has no meaning here is refused with what to do instead.
"""

from collections.abc import Sequence

from holdfast.errors import UsageError

CLUSTER, LOCAL = ("cluster",), ("local", "client")
_OURS = ("-h", "--help", "--version")
_VERBS = {
    "-l": "list", "--list": "list",
    "-j": "status", "--job-id": "status", "--metrics": "status",
    "--get_running_job_metrics": "list",
    "-can": "cancel", "--cancel-job": "cancel",
    "-f": "cancel --force", "--force-cancel-job": "cancel --force",
    "-s": "savepoint", "--savepoint": "savepoint",
    "-r": "restore", "--restore": "restore",
}  # fmt: skip
_MASTER = ("-m", "--master", "-e", "--deploy-mode")
_CLUSTER_NAME = ("-cn", "--cluster")
_NOT_HERE = {
    "--encrypt": "Holdfast keeps secrets out of job files: write ${NAME} and give it with -i or"
    " from the environment.",
    "--decrypt": "Holdfast encrypts no job files, so there is nothing to decrypt.",
    "--restore-with-checkpoint": "stop the job with: holdfast savepoint ID, and go on with:"
    " holdfast restore ID.",
    "-d": "use: holdfast check (reads the file) or holdfast plan (asks the sources too).",
}
_NOT_HERE["--dry-run"] = _NOT_HERE["-d"]
"""Flags that mean nothing here, and what to do instead."""


def translated(arguments: Sequence[str]) -> list[str]:
    """Return the arguments as our own command line takes them."""
    given = list(arguments)
    if not given or not given[0].startswith("-") or given[0] in _OURS:
        return given
    for word in given:
        if word in _NOT_HERE:
            raise UsageError(f"{word} is not a flag of Holdfast: {_NOT_HERE[word]}")
    where = _take(given, _MASTER)
    _take(given, _CLUSTER_NAME)
    for place, word in enumerate(given):
        verb = _VERBS.get(word)
        if verb:
            return [*verb.split(), *given[place + 1 :], *given[:place]]
    if any(word in ("-c", "--config") for word in given):
        if where and where not in CLUSTER + LOCAL:
            raise UsageError(f"-m {where}: say local or cluster.")
        if "--check" in given:
            return ["check", *(word for word in given if word != "--check")]
        return ["submit" if where in CLUSTER else "run", *given]
    return list(arguments)


def _take(given: list[str], names: Sequence[str]) -> str:
    """Take a flag and its value out of the arguments."""
    for place, word in enumerate(given[:-1]):
        if word in names:
            value = given[place + 1]
            del given[place : place + 2]
            return value
    return ""
