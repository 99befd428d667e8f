"""The flags that say which masters a verb asks, and with which token."""

from typing import Annotated

import typer

Masters = Annotated[
    str | None,
    typer.Option(
        "--masters", metavar="URL,URL", help="The masters to ask; HOLDFAST_MASTERS by default."
    ),
]
NodeFile = Annotated[
    str | None,
    typer.Option(
        "--node-config", metavar="FILE", help="A node's YAML file, for masters and token."
    ),
]
Token = Annotated[
    str | None, typer.Option("--token-file", metavar="FILE", help="The file with the token.")
]
Patience = Annotated[
    float, typer.Option("--patience", metavar="SECONDS", help="How long to look for a leader.")
]
