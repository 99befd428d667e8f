"""The scripted move, on a small tree: modules, names, strings, documents, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import rename
from tools.rename_left import check
from tools.rename_table import Table, read_table, table_of, today
from tools.rename_text import Words

FILES = {
    "holdfast/__init__.py": (
        '"""Top."""\n\nfrom holdfast.node.keys import Key\n\n__all__ = ["Key"]\n'
    ),
    "holdfast/node/__init__.py": '"""The room."""\n',
    "holdfast/node/keys.py": (
        '"""Keys.  See `seal.py`, and `node/seal.py`."""\n\n\n'
        'class Key:\n    """A key."""\n\n    def twin(self) -> "Key":\n'
        '        """Return a `Key` like this."""\n        return Key()\n'
    ),
    "holdfast/node/seal.py": (
        '"""Seal."""\n\n'
        "from holdfast import Key as Outside\n"
        "from holdfast.node import keys\n"
        "from holdfast.node.keys import Key\n\n"
        'LATE = {"Key": "holdfast.node.keys"}\n\n\n'
        'def make(key: "Key | None" = None) -> Key:\n'
        '    """Make a `Key` (`keys.py`)."""\n'
        "    return key or keys.Key() or Outside()\n"
    ),
    "tests/__init__.py": "",
    "tests/test_seal.py": (
        "from holdfast.node import keys, seal\n\n\n"
        "def test_a_key() -> None:\n"
        "    identity = 1\n"
        "    assert identity and isinstance(seal.make(), keys.Key)\n"
        '    assert "holdfast/node/keys.py" and "from holdfast.node.keys import Key"\n'
    ),
    "docs/a.md": (
        "`node/keys.py` has `Key`; `python -m holdfast.node.seal`. Not /etc/holdfast/node.\n"
    ),
    "pyproject.toml": "[tool.ruff]\nline-length = 100\n",
}
ROWS = {
    "steps": {
        "move": {
            "moves": {
                "holdfast.node": "holdfast.process",
                "holdfast.node.keys": "holdfast.security.identity",
                "holdfast.node.seal": "holdfast.security.seal",
            },
            "packages": {"holdfast.security": "Who may do what."},
        },
        "names": {"names": {"holdfast.node.keys:Key": "JoinKey"}},
    }
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def apply(tree: Path, *steps: str) -> list[str]:
    table = table_of(ROWS)
    notes = []
    for name in steps:
        notes += rename.apply(tree, table, table.step(name))
        subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    return notes


def test_modules_move_with_all_that_names_them(tree: Path) -> None:
    notes = apply(tree, "move")
    assert not (tree / "holdfast/node").exists()
    assert (tree / "holdfast/process/__init__.py").read_text() == '"""The room."""\n'
    assert (tree / "holdfast/security/__init__.py").read_text() == '"""Who may do what."""\n'
    seal = (tree / "holdfast/security/seal.py").read_text()
    assert "from holdfast.security import identity\n" in seal
    assert "key or identity.Key()" in seal
    assert '{"Key": "holdfast.security.identity"}' in seal
    assert "(`identity.py`)" in seal
    assert (tree / "docs/a.md").read_text() == (
        "`security/identity.py` has `Key`; `python -m holdfast.security.seal`."
        " Not /etc/holdfast/node.\n"
    )
    test = (tree / "tests/test_seal.py").read_text()
    assert "from holdfast.security import identity as keys" in test  # `identity` was taken
    assert '"holdfast/security/identity.py"' in test
    assert '"from holdfast.security.identity import Key"' in test
    assert [note for note in notes if "identity is used for something else" in note]


def test_names_change_wherever_they_went(tree: Path) -> None:
    apply(tree, "move", "names")
    top = (tree / "holdfast/__init__.py").read_text()
    assert "import JoinKey" in top and '__all__ = ["JoinKey"]' in top
    keys = (tree / "holdfast/security/identity.py").read_text()
    assert 'def twin(self) -> "JoinKey":' in keys and "return JoinKey()" in keys
    assert "Return a `JoinKey` like this" in keys
    seal = (tree / "holdfast/security/seal.py").read_text()
    assert "from holdfast import JoinKey as Outside" in seal
    assert 'key: "JoinKey | None" = None' in seal
    assert "identity.JoinKey() or Outside()" in seal
    test = (tree / "tests/test_seal.py").read_text()
    assert "keys.JoinKey)" in test and "identity import JoinKey" in test
    assert "has `JoinKey`" in (tree / "docs/a.md").read_text()


def test_what_was_moved_still_runs(tree: Path) -> None:
    apply(tree, "move", "names")
    code = "from holdfast.security.seal import make; import holdfast; print(type(make()).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=True
    )
    assert done.stdout == "JoinKey\n"


def test_what_is_left_is_said(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of(ROWS)
    assert check(tree, table, rename.documents(tree)) == 1
    assert "PENDING: 4" in capsys.readouterr().out
    apply(tree, "move", "names")
    assert check(tree, table, rename.documents(tree)) == 0
    with (tree / "docs/a.md").open("a") as page:
        page.write("And holdfast/node/keys.py was here.\n")
    assert check(tree, table, rename.documents(tree)) == 1
    assert "docs/a.md:2: holdfast/node/keys" in capsys.readouterr().out


def test_a_module_may_stay_in_its_package_under_another_name(tree: Path) -> None:
    table = table_of({"steps": {"x": {"moves": {"holdfast.node.keys": "holdfast.node.identity"}}}})
    rename.apply(tree, table, table.step("x"))
    seal = (tree / "holdfast/node/seal.py").read_text()
    assert "from holdfast.node import identity\n" in seal and "identity.Key()" in seal
    assert "import identity as keys\n" in (tree / "tests/test_seal.py").read_text()


def test_code_in_a_text_keeps_working() -> None:
    words = Words({"holdfast.worker.home": "holdfast.files.state_dir"})
    code = "from holdfast.worker import home; home.root()"
    assert words.replace(code) == "from holdfast.files import state_dir as home; home.root()"


def test_a_row_for_what_is_not_there_is_wrong(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"steps": {"x": {"moves": {"holdfast.nowhere": "holdfast.somewhere"},
                            "names": {"holdfast.node.keys:Lock": "Bolt"}}}}  # fmt: skip
    assert check(tree, table_of(rows), []) == 1
    said = capsys.readouterr().out
    assert "WRONG: 2" in said and "defines neither Lock nor Bolt" in said


def test_a_move_overwrites_nothing(tree: Path) -> None:
    table = table_of({"steps": {"x": {"moves": {"holdfast.node.keys": "holdfast.node.seal"}}}})
    with pytest.raises(SystemExit, match="is there"):
        rename.apply(tree, table, table.step("x"))


def test_a_package_that_is_run_goes_where_its_main_goes(tree: Path) -> None:
    (tree / "holdfast/node/__main__.py").write_text("")
    (tree / "Makefile").write_text("\tpython -m holdfast.node\n")
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    moves = {"holdfast.node": "tests.node.engine", "holdfast.node.__main__": "tests.node.__main__"}
    table = table_of({"steps": {"x": {"moves": moves}}})
    rename.apply(tree, table, table.step("x"))
    assert (tree / "Makefile").read_text() == "\tpython -m tests.node\n"


def test_the_table_fits_this_tree(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2]
    table: Table = read_table(root)
    check(root, table, [])
    said = capsys.readouterr().out
    assert "WRONG: 0" in said, said
    assert today("holdfast.model.job", table, root) == "holdfast.model.job"
