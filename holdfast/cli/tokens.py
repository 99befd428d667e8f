"""The verbs about who may ask: make a token, list them, take one back."""

from typing import Annotated

import typer

from holdfast.cli.cluster_verb import (
    Connect,
    Json,
    cluster_verb,
    print_grid,
    print_json,
)
from holdfast.cli.terminal import screen
from holdfast.client import date_text

Named = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is; logs show it.")]
TokenId = Annotated[str, typer.Argument(metavar="TOKEN_ID", help="Its id, as tokens lists it.")]
AsRole = Annotated[str, typer.Option("--role", help="What it may do: viewer, operator or admin.")]
Days = Annotated[float, typer.Option("--days", min=0.0, help="How long it is good; 0: for ever.")]


@cluster_verb
def token(
    connect: Connect,
    name: Named,
    role: AsRole = "viewer",
    days: Days = 0.0,
) -> None:
    """Make a token for somebody.  Its text is printed this once and kept nowhere."""
    made = connect().give_token(name, role, days)
    until = f", until {date_text(made.expires_s)}" if made.expires_s else ""
    screen.print(f"Token {made.id} of {made.name}, {made.role}{until}:", markup=False)
    typer.echo(made.token)


@cluster_verb
def tokens(
    connect: Connect,
    *,
    as_json: Json = False,
) -> None:
    """List the tokens that were given out, without their text."""
    found = connect().tokens()
    if as_json:
        print_json(found)
        return
    rows = [(t.id, t.name, t.role, date_text(t.created_s), date_text(t.expires_s)) for t in found]
    print_grid(("token id", "name", "role", "made", "good until"), rows)


@cluster_verb
def revoke(
    connect: Connect,
    token_id: TokenId,
) -> None:
    """Make a token worthless, at once and on every master."""
    connect().take_token_back(token_id)
    screen.print(f"Token {token_id} opens nothing any more.", markup=False)
