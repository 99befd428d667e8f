"""A node's config: where values come from, what is wrong with them, and what is never shown."""

import stat
from pathlib import Path

import pytest

from holdfast.config import Config, host_and_port, load_config
from holdfast.connect.options import describe
from holdfast.errors import UserError
from holdfast.model.secret import Secret
from holdfast.security.token_files import client_token, find_token


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def written(folder: Path, text: str) -> str:
    path = folder / "node.yaml"
    path.write_text(text)
    return str(path)


def test_without_any_setting_a_machine_works(home: Path) -> None:
    config = load_config({}, {}).config
    assert config.store == f"sqlite:{home}/cluster/store.db"
    assert config.blobs == f"{home}/cluster/blobs"
    assert config.masters == ["http://127.0.0.1:5801"]
    assert config.advertise == "http://127.0.0.1:5801"
    assert host_and_port(config) == ("127.0.0.1", 5801)
    assert config.slots >= 8 and config.name
    times = (config.lease_s, config.worker_lost_s, config.progress_s, config.tombstone_s)
    assert times == (3.0, 10.0, 300.0, 60.0)


def test_a_flag_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "lease_s: 4\nslots: 2\nhistory: 7\n")
    environ = {"HOLDFAST_LEASE_S": "5", "HOLDFAST_SLOTS": "3"}
    effective = load_config({"lease_s": "6"}, environ, file)
    config = effective.config
    assert (config.lease_s, config.slots, config.history) == (6.0, 3, 7)
    shown = effective.shown()
    assert "lease_s: 6.0  # flag" in shown
    assert "slots: 3  # environment" in shown
    assert f"history: 7  # {file}" in shown
    assert "tombstone_s: 60.0  # default" in shown


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "name: here\n")
    assert load_config({}, {"HOLDFAST_CONFIG": file}).config.name == "here"


def test_every_mistake_is_told_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    file = written(tmp_path, "leas_s: 4\nslots: many\n")
    with pytest.raises(UserError) as caught:
        load_config({"history": "0"}, {"HOLDFAST_TIMEOUT_S": "long"}, file)
    said = str(caught.value)
    assert f"{file}:1:1: unknown option 'leas_s'. Did you mean 'lease_s'?" in said
    assert f"{file}:2:8: slots must be a whole number, not 'many'." in said
    assert "HOLDFAST_TIMEOUT_S: timeout_s must be a number, not 'long'." in said
    assert "--history: history must be at least 1, not 0." in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"listen": "5801"}, "--listen: listen must be HOST:PORT, not '5801'."),
        ({"masters": "one:5801"}, "--masters: masters must be URLs such as http://"),
        ({"masters": "http://"}, "--masters: masters must be URLs such as http://"),
        ({"masters": "http://a:99999"}, "not 'http://a:99999' (Port out of range"),
        ({"masters": "http://a b"}, "(it has a blank inside; put a comma between two URLs)."),
        ({"masters": "http://a:1 http://b:1"}, "(it has a blank inside; put a comma between"),
        ({"masters": "http://[::1"}, "not 'http://[::1' (Invalid IPv6 URL)."),
    ],
)
def test_addresses_are_checked(flags: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_config(flags, {})
    assert said in str(caught.value)


def test_a_file_that_is_no_yaml_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="This is not YAML"):
        load_config({}, {}, written(tmp_path, "a: [1\n"))
    with pytest.raises(UserError, match="cannot be read"):
        load_config({}, {}, str(tmp_path / "none.yaml"))
    assert load_config({}, {}, written(tmp_path, "# nothing\n\n")).config.lease_s == 3.0


def test_lists_and_blocks_are_given_in_one_line(tmp_path: Path) -> None:
    config = load_config(
        {"masters": "http://a:1, http://b:2", "tags": "zone=a,disk=fast"}, {}
    ).config
    assert config.masters == ["http://a:1", "http://b:2"]
    assert config.tags == {"zone": "a", "disk": "fast"}
    file = written(tmp_path, "spark.master: local[2]\nspark: {spark.ui.enabled: false}\n")
    assert load_config({}, {}, file).config.spark == {
        "spark.ui.enabled": "false", "spark.master": "local[2]",
    }  # fmt: skip


def test_no_secret_is_shown(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "token: abcabc\nstore: postgres://me:abcabc@host/db\nspark: {spark.x.password: abcabc}\n"
        "blobs: s3://bucket/x?endpoint=http://h&secret_key=abcabc&session_token=abcabc\n",
    )
    effective = load_config({}, {}, file)
    assert "abcabc" not in effective.shown()
    assert "s3://bucket/x?endpoint=http://h&" in effective.shown()
    assert "abcabc" not in repr(effective)[: repr(effective).index("store=")]
    assert find_token(effective.config, create=False) == Secret("abcabc")


def test_the_first_start_makes_a_token_that_only_its_user_reads(home: Path) -> None:
    config = load_config({}, {}).config
    with pytest.raises(UserError, match="Start a master"):
        find_token(config, create=False)
    made = find_token(config, create=True)
    assert len(made.reveal()) > 30
    assert stat.S_IMODE((home / "cluster" / "token").stat().st_mode) == 0o600
    assert find_token(config, create=True) == find_token(config, create=False) == made


def test_a_client_of_this_machines_masters_may_be_the_first_who_needs_a_token(home: Path) -> None:
    elsewhere = load_config({"masters": "http://127.0.0.1:5801,http://m2:5801"}, {}).config
    with pytest.raises(UserError, match="as the masters have it"):
        client_token(elsewhere)
    made = client_token(load_config({"masters": "http://localhost:5801"}, {}).config)
    assert made == find_token(load_config({}, {}).config, create=True)


def test_a_token_file_of_ones_own_is_never_made(tmp_path: Path) -> None:
    config = load_config({"token_file": str(tmp_path / "mine")}, {}).config
    with pytest.raises(UserError, match="cannot be read"):
        find_token(config, create=True)
    (tmp_path / "mine").write_text("\n")
    with pytest.raises(UserError, match="is empty"):
        find_token(config, create=True)


def test_every_option_says_what_it_does() -> None:
    assert all(info.doc for info in describe(Config))
    assert Config().lease_s == 3.0


def test_hosts_that_reports_may_go_to_are_an_option_like_all_others(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text('report_hosts: [hooks.example.org, "10.1.2.3:8080"]\n')
    assert load_config({}, {}, str(file)).config.report_hosts == [
        "hooks.example.org",
        "10.1.2.3:8080",
    ]
    found = load_config({}, {"HOLDFAST_REPORT_HOSTS": "a.example, b.example"}, str(file))
    assert found.config.report_hosts == ["a.example", "b.example"]
    assert Config().report_hosts == [], "none is allowed by default"
