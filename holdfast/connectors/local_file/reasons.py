"""Why a file could not be read or written, in words."""


def why(error: Exception) -> str:
    """Return what the system said, without numbers and paths that the sentence around it has."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    mend = " (check who may read it)" if isinstance(error, PermissionError) else ""
    return " ".join(said.split()).rstrip(".") + mend
