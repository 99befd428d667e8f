"""Write metrics as Prometheus reads them: its text format 0.0.4, and OpenMetrics 1.0."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Labels = Mapping[str, str]


@dataclass
class Family:
    """A metric: its name without `_total`, its kind, what it says, and its samples."""

    name: str
    kind: str
    about: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        """Add a sample of a gauge or a counter."""
        self.samples.append(("_total" if self.kind == "counter" else "", labels, value))

    def add_histogram(
        self, bounds: Sequence[float], counts: Sequence[int], number: int, total: float,
        **labels: str,
    ) -> None:  # fmt: skip
        """Add a histogram; `counts` are cumulative."""
        for bound, count in zip(bounds, counts, strict=True):
            self.samples.append(("_bucket", {**labels, "le": _number(bound)}, count))
        self.samples.append(("_bucket", {**labels, "le": "+Inf"}, number))
        self.samples.append(("_count", labels, number))
        self.samples.append(("_sum", labels, total))


def written(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """Return all metrics as text."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        plain = "_total" if family.kind == "counter" and not openmetrics else ""
        lines.append(f"# HELP {family.name}{plain} {_escaped(family.about)}")
        lines.append(f"# TYPE {family.name}{plain} {family.kind}")
        for suffix, labels, value in family.samples:
            pairs = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
            inside = f"{{{pairs}}}" if pairs else ""
            lines.append(f"{family.name}{suffix}{inside} {_number(value)}")
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
