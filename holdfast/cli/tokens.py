"""The verbs about access: create a token, list them, revoke one."""

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
Days = Annotated[float, typer.Option("--days", min=0.0, help="How long it is valid; 0: no limit.")]


@cluster_verb
def token(
    connect: Connect,
    name: Named,
    role: AsRole = "viewer",
    days: Days = 0.0,
) -> None:
    """Create a token.  Its text is printed this once and kept nowhere."""
    new = connect().give_token(name, role, days)
    until = f", until {date_text(new.expires_s)}" if new.expires_s else ""
    screen.print(f"Token {new.id} of {new.name}, {new.role}{until}:", markup=False)
    typer.echo(new.token)


@cluster_verb
def tokens(
    connect: Connect,
    *,
    as_json: Json = False,
) -> None:
    """List the tokens, without their text."""
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
    """Revoke a token, at once and on every master."""
    connect().take_token_back(token_id)
    screen.print(f"Token {token_id} opens nothing any more.", markup=False)
