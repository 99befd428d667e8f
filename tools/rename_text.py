"""Names of modules and classes in text: strings, comments, documents, Makefile, settings."""

import re
from collections.abc import Mapping

DOTTED = re.compile(r"(?<![\w./-])(?:holdfast|tests|tools)(?:\.\w+)+")
SLASHED = re.compile(r"(?<![\w.~-])(?<!\w/)(?:holdfast|tests|tools)(?:/\w+)+(?:\.py)?(?![\w.]*\w)")
RUN = re.compile(r"""(-m["',\s]+)((?:holdfast|tests)(?:\.\w+)+)""")
IMPORT = re.compile(r"from (holdfast[\w.]*) import (\w+(?:, ?\w+)*)")
TICKED = re.compile(r"`(\w+)((?:\.\w+)*(?:\(\))?)`")


class Words:
    """What is put in the place of what, in text.

    `modules`: dotted name -> dotted name.  `names`: (module, name) -> name, modules as they are
    after the moves.
    """

    def __init__(
        self, modules: Mapping[str, str], names: Mapping[tuple[str, str], str] | None = None
    ) -> None:
        self.modules = modules
        self.names = names or {}
        self.paths = _paths(modules)
        self._parents = {old.rpartition(".")[0] for old in modules} | set(modules)
        rooms = {p.split("/")[0] for p in self.paths}
        self._short = re.compile(
            rf"(?<![\w/.-])(?:{'|'.join(sorted(rooms)) or '-'})(?:/\w+)+(?:\.py)?(?![\w]|\.\w)"
        )

    def replace(self, text: str, folder: str = "") -> str:
        """Return a text in the new names; `folder` is where its file was, such as `node/rest`."""
        text = RUN.sub(self._run, text)
        text = IMPORT.sub(self._imported, text)
        text = DOTTED.sub(lambda m: self._dotted(m[0]), text)
        text = SLASHED.sub(lambda m: self._slashed(m[0]), text)
        text = self._short.sub(lambda m: self.paths.get(m[0], m[0]), text)
        return self._siblings(text, folder) if folder else text

    def named_in(self, text: str) -> bool:
        """Whether a text may name a module that moves: without this it need not be parsed."""
        short = any(path in text for path in self.paths) or any(
            f"`{path.rpartition('/')[2]}`" in text for path in self.paths
        )
        return short or any(parent in text for parent in self._parents)

    def _run(self, match: re.Match[str]) -> str:
        """A package that is run: its `__main__` may have gone elsewhere than the rest."""
        main = self.modules.get(f"{match[2]}.__main__")
        return match[1] + (main.removesuffix(".__main__") if main else match[2])

    def _imported(self, match: re.Match[str]) -> str:
        """An import inside a text: of a module, which keeps the name it has there, or of names."""
        goal = self.modules.get(f"{match[1]}.{match[2]}")
        if goal:
            parent, _, base = goal.rpartition(".")
            named = base if base == match[2] else f"{base} as {match[2]}"
            return f"from {parent} import {named}"
        module = self.modules.get(match[1], match[1])
        names = [n.strip() for n in match[2].split(",")]
        new = [self.names.get((module, n), n) for n in names]
        return match[0] if new == names else f"from {match[1]} import {', '.join(new)}"

    def _dotted(self, text: str) -> str:
        parts = text.split(".")
        for length in range(len(parts), 1, -1):
            head, rest = ".".join(parts[:length]), parts[length:]
            goal = self.modules.get(head)
            module = goal or head
            if rest and (module, rest[0]) in self.names:
                return ".".join([module, self.names[module, rest[0]], *rest[1:]])
            if goal:
                return ".".join([goal, *rest])
        return text

    def _slashed(self, text: str) -> str:
        """A path: of a module, or of something in a folder that moves, such as `windows_*.py`."""
        stem = text.removesuffix(".py")
        parts = stem.split("/")
        for length in range(len(parts), 1, -1):
            goal = self.modules.get(".".join(parts[:length]))
            if goal and (length == len(parts) or length > 2):
                rest = "".join(f"/{part}" for part in parts[length:])
                return goal.replace(".", "/") + rest + text[len(stem) :]
        return text

    def _siblings(self, text: str, folder: str) -> str:
        """A file of the same folder, named alone: `meter.py`."""

        def new(match: re.Match[str]) -> str:
            goal = self.paths.get(f"{folder}/{match[1]}.py")
            return f"`{goal.rpartition('/')[2]}`" if goal else match[0]

        return re.sub(r"`(\w+)\.py`", new, text)


def _paths(modules: Mapping[str, str]) -> dict[str, str]:
    """Return short paths as documents have them, `node/api.py` or `testing/sim`, and their new."""
    found = {}
    for old, new in modules.items():
        if old.startswith("holdfast."):
            short, goal = old.split(".", 1)[1].replace(".", "/"), new.replace(".", "/")
            goal = goal.removeprefix("holdfast/")
            found[f"{short}.py"] = f"{goal}.py"
            if "/" in short:
                found[short] = goal
    return found


def replace_words(text: str, words: Mapping[str, str]) -> str:
    """Replace whole words."""
    if not words:
        return text
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, words))})(?!\w)")
    return pattern.sub(lambda m: words[m[1]], text)


def replace_ticked(text: str, words: Mapping[str, str]) -> str:
    """Replace names that stand in backticks, alone or before a dot: `Old`, `Old.method()`."""
    return TICKED.sub(lambda m: f"`{words.get(m[1], m[1])}{m[2]}`", text)
