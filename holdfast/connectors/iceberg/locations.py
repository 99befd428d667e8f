"""Where catalogs say that tables are."""

from collections.abc import Mapping

from holdfast.connectors.lake.location import S3_SCHEMES, Location
from holdfast.errors import UserError


def place_of(location: str, s3: Mapping[str, str] | None = None) -> Location:
    """Return the folder that a catalog names.  Raises UserError for one we cannot write to."""
    scheme, colon, rest = location.partition(":")
    if not colon:
        return Location(location)
    if scheme == "file":  # with one slash or three, and nothing in it is quoted
        return Location("/" + rest.lstrip("/"))
    if scheme in S3_SCHEMES:
        return Location(location, s3 or {})
    raise UserError(
        f"Iceberg cannot write to {location}: this sink writes to folders and to S3.",
        code="sink.location",
    )
