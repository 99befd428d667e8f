"""Why a file could not be read or written, in words."""

from holdfast.connect.rights import may_not


def why(error: Exception) -> str:
    """Return what the system said, without numbers and paths that the sentence around it has."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, PermissionError) and error.filename:
        return f"{may_not('read', error.filename)}. Give that user the right"
    return " ".join(said.split()).rstrip(".")
