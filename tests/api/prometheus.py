"""Prometheus's own engine (promtool) on what a master really answers: which alerts fire.

An exposition from before and one from after something went wrong become series: a quarter of an
hour as it was, then ten minutes as it is.  Counters grow evenly from the one to the other.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tools.debian import unpacked

STEP_S = 15
BEFORE, AFTER = 60, 40
"""How many samples there are of each."""

AT_END = f"{BEFORE * STEP_S + 570}s"
AT_FIRST = f"{(BEFORE - 1) * STEP_S}s"
GROWING = ("_total", "_bucket", "_count", "_sum")

Series = dict[str, float]


def promtool() -> Path:
    """Return the tool, of Debian's package."""
    return unpacked("prometheus", "prometheus") / "usr/bin/promtool"


def checked(rules: Path) -> None:
    """Have the rules read."""
    done = _run("check", "rules", str(rules))
    assert done.returncode == 0, done.stdout + done.stderr


def firing(rules: Path, folder: Path, was: str, now: str, *alerts: str) -> str:
    """Return "" if just these alerts fire in the end, and none did before; else what is wrong."""
    before, after = series(was), series(now)
    test = {
        "interval": f"{STEP_S}s",
        "input_series": [
            {"series": name, "values": _values(name, before.get(name), after.get(name))}
            for name in sorted(before.keys() | after.keys())
        ],
        "promql_expr_test": [
            {"expr": FIRING, "eval_time": AT_FIRST, "exp_samples": []},
            {"expr": FIRING, "eval_time": AT_END, "exp_samples": _fired(alerts)},
        ],
    }
    suite = {"rule_files": [str(rules)], "evaluation_interval": f"{STEP_S}s", "tests": [test]}
    path = folder / f"{'-'.join(alerts) or 'none'}.yaml"
    path.write_text(yaml.safe_dump(suite))
    done = _run("test", "rules", str(path))
    return "" if done.returncode == 0 else done.stdout + done.stderr


FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'


def series(exposition: str) -> Series:
    """Return the value of each series, under its name as Prometheus writes it."""
    return {
        _name(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
    }


def _fired(alerts: Iterable[str]) -> list[dict[str, object]]:
    return [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in alerts]


def _name(name: str, labels: dict[str, str]) -> str:
    said = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{said}}}"


def _values(name: str, was: float | None, now: float | None) -> str:
    """Return a series in promtool's words: `a+bxn` is a and n more, `_` is no sample."""
    first = f"_x{BEFORE}" if was is None else f"{was:.9g}+0x{BEFORE - 1}"
    if now is None:
        return f"{first} stale _x{AFTER - 1}"
    if was is not None and name.partition("{")[0].endswith(GROWING):
        step = (now - was) / AFTER
        return f"{first} {was:.9g}{step:+.9g}x{AFTER - 1}"
    return f"{first} {now:.9g}+0x{AFTER - 1}"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(promtool()), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
