"""What the tag of a savepoint is called."""

from holdfast.connect.sink import CommitId


def tag_of(identifier: CommitId, job: str) -> str:
    """Return the tag of a savepoint.

    It has the job's life and the checkpoint in it, so that a job that begins anew, and numbers its
    checkpoints from 1 again, never takes another's.
    """
    rest = identifier.user.removeprefix(f"{job}.").split(".")
    return "-".join(("savepoint", job, *rest[:2], str(identifier.number)))
