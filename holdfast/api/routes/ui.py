"""The pages of the UI: files that come with the package, read once, each a path of its own.

They hold nothing of any job, so whoever opens the address may load them; what they show they ask
for with a token.  No name from a request ever becomes a path.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable

from holdfast.api.route import ApiRequest, Handler, Permission, Route, Text

MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json;charset=UTF-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
KEPT_BY_BROWSERS = {"Cache-Control": "public, max-age=31536000, immutable"}
"""For names that hold a hash of their content, in `assets/`."""


def page_routes(folder: Traversable | None = None) -> list[Route]:
    """Return a path for each file of the UI; `index.html` is `/`.  None if there is no UI."""
    root = folder or files("holdfast").joinpath("ui")
    if not root.is_dir():
        return []
    return [_route(path, file) for path, file in sorted(_files(root, ""), key=lambda f: f[0])]


def _files(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _files(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in {m.removeprefix(".") for m in MEDIA}:
            found.append((f"{prefix}{each.name}", each))
    return found


def _route(name: str, file: Traversable) -> Route:
    path = "/" if name == "index.html" else f"/{name}"
    media = MEDIA["." + name.rpartition(".")[2]]
    headers = KEPT_BY_BROWSERS if name.startswith("assets/") else {}
    answer = Text(file.read_bytes(), media, headers)
    return Route(
        "GET", path, Permission.PUBLIC, _answering(answer), Text, f"The UI's {name}.", leads=False
    )


def _answering(answer: Text) -> Handler:
    async def handler(ask: ApiRequest) -> Text:
        return answer

    return handler
