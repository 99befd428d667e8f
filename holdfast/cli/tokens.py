"""The verbs about who may ask: make a token, list them, take one back."""

from typing import Annotated

import typer

from holdfast.cli.cluster import Json, print_grid, print_json
from holdfast.cli.flags import Masters, NodeFile, Patience, Token
from holdfast.cli.masters import client_for
from holdfast.cli.run import Debug
from holdfast.cli.terminal import screen
from holdfast.client import date_text

Named = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is; logs show it.")]
TokenId = Annotated[str, typer.Argument(metavar="TOKEN_ID", help="Its id, as tokens lists it.")]
AsRole = Annotated[str, typer.Option("--role", help="What it may do: viewer, operator or admin.")]
Days = Annotated[float, typer.Option("--days", min=0.0, help="How long it is good; 0: for ever.")]


def token(
    name: Named,
    role: AsRole = "viewer",
    days: Days = 0.0,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Make a token for somebody.  Its text is printed this once and kept nowhere."""
    made = client_for(masters, node_config, token_file, patience).give_token(name, role, days)
    until = f", until {date_text(made.expires_s)}" if made.expires_s else ""
    screen.print(f"Token {made.id} of {made.name}, {made.role}{until}:", markup=False)
    typer.echo(made.token)


def tokens(
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the tokens that were given out, without their text."""
    found = client_for(masters, node_config, token_file, patience).tokens()
    if as_json:
        print_json(found)
        return
    rows = [(t.id, t.name, t.role, date_text(t.created_s), date_text(t.expires_s)) for t in found]
    print_grid(("token id", "name", "role", "made", "good until"), rows)


def revoke(
    token_id: TokenId,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Make a token worthless, at once and on every master."""
    client_for(masters, node_config, token_file, patience).take_token_back(token_id)
    screen.print(f"Token {token_id} opens nothing any more.", markup=False)
