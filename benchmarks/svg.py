"""Draw a plot as SVG, without a library: bars that lie, lines, and dots.

Pure: the same plot gives the same text.  A picture brings its own background, in light and in
dark, because a page cannot be trusted to tell a picture which of the two it has.  Widths of words
are estimated on the wide side, since nobody measures fonts here.
"""

import math
from collections.abc import Callable, Sequence
from textwrap import wrap
from xml.sax.saxutils import escape

from benchmarks.report import Plot, cell

WIDTH = 760
PAD = 20
GLYPH = 7.0
"""How wide a letter of 12 pixels is, at most on average."""
THICK = 16
GAP = 14
HEIGHT = 260
LABEL_MAX = 30

At = Callable[[int, int, float | str], float]
"""Where a point stands: by the number of its series, its own number, and its x."""

_LIGHT = ("#0072b2", "#e08a00", "#009e73", "#c2410c", "#a6518a", "#5b6770", "#7a6a00")
_DARK = ("#4db2f0", "#f0ad4e", "#3fcf9f", "#ff8a5c", "#e29ac6", "#aeb8c0", "#d9c64a")


def draw(plot: Plot) -> str:
    """Return a plot as an SVG document.  It must have a point to show."""
    if not any(plot.series.values()):
        raise ValueError(f"Plot {plot.title!r} has no points. Leave it out of the report.")
    head, top = _head(plot)
    body, height = (_bars if plot.kind == "bars" else _graph)(plot, top)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}"'
            f' width="{WIDTH}" height="{height:g}" role="img">',
            f"<title>{escape(plot.title)}</title>",
            f"<style>{_style()}</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}"'
            ' rx="6"/>',
            *head,
            *body,
            "</svg>",
            "",
        ]
    )


def word_width(words: str) -> float:
    """Return how much room words need, rather too much than too little."""
    return len(words) * GLYPH


def ticks(most: float) -> list[float]:
    """Return four to seven round numbers from nought to just past `most`."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= rough * 0.999)
    return [round(i * step, 12) for i in range(math.ceil(most / step - 1e-9) + 1)]


def number(value: float) -> str:
    """Return an axis label: a round number, with no more digits than it has."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def _style() -> str:
    def scheme(page: str, ink: str, faint: str, colours: Sequence[str]) -> str:
        marks = "".join(f".s{i}{{fill:{c};stroke:{c}}}" for i, c in enumerate(colours))
        return (
            f".page{{fill:{page};stroke:{faint}}}text{{fill:{ink}}}.grid{{stroke:{faint}}}{marks}"
        )

    return (
        "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
        ".title{font-size:14px;font-weight:600}rect.bar{stroke:none}"
        "polyline.line{fill:none;stroke-width:2}"
        + scheme("#ffffff", "#24292f", "#d8dee4", _LIGHT)
        + "@media (prefers-color-scheme:dark){"
        + scheme("#161b22", "#e6edf3", "#373e47", _DARK)
        + "}"
    )


def _head(plot: Plot) -> tuple[list[str], float]:
    """Return the title and the legend, and where what is below them may begin."""
    drawn = [_text(PAD, 28, plot.title, css="title")]
    x, y = float(PAD), 50.0
    for i, name in enumerate(plot.series):
        room = 18 + word_width(name) + 16
        if x > PAD and x + room > WIDTH - PAD:
            x, y = float(PAD), y + 20
        drawn += [_rect(x, y - 10, 12, 12, i), _text(x + 18, y, name)]
        x += room
    return drawn, y + 16


def _bars(plot: Plot, top: float) -> tuple[list[str], float]:
    """Return lying bars, grouped by word: names of any length fit, and every bar says its value."""
    words = list(dict.fromkeys(str(x) for points in plot.series.values() for x, _ in points))
    values = {(str(x), i): y for i, points in enumerate(plot.series.values()) for x, y in points}
    left = PAD + max(word_width(line) for word in words for line in _lines(word)) + 10
    scale = ticks(max(values.values()))
    room = WIDTH - PAD - left - max(word_width(cell(v)) for v in values.values()) - 6
    drawn: list[str] = []
    y = top + 6
    for word in words:
        group = [(i, values[word, i]) for i in range(len(plot.series)) if (word, i) in values]
        tall = max(len(group) * (THICK + 2), len(_lines(word)) * 15)
        first = y + tall / 2 - (len(_lines(word)) - 1) * 7.5 + 4
        for n, line in enumerate(_lines(word)):
            drawn.append(_text(left - 10, first + n * 15, line, anchor="end"))
        for n, (i, value) in enumerate(group):
            long, at = room * value / scale[-1], y + n * (THICK + 2)
            drawn.append(_rect(left, at, max(long, 1), THICK, i))
            drawn.append(_text(left + long + 6, at + 12, cell(value)))
        y += tall + GAP
    marks = [(left + room * v / scale[-1], number(v)) for v in scale]
    grid = [_line(x, top, x, y - 6) for x, _ in marks]
    return [*grid, *drawn, *_below(marks, y + 10), *_across(plot.unit, left, y + 30)], y + 42


def _graph(plot: Plot, top: float) -> tuple[list[str], float]:
    """Return lines or dots over an x axis of numbers or of words, and a y axis from nought."""
    scale = ticks(max(y for points in plot.series.values() for _, y in points))
    left = PAD + max(word_width(number(v)) for v in scale) + 10
    low, up = top + 20 + HEIGHT, top + 20
    at, marks = _places(plot, left, WIDTH - PAD - 16)

    def height(y: float) -> float:
        return low - (low - up) * y / scale[-1]

    drawn = [_text(PAD, top + 8, plot.unit)]
    for v in scale:
        drawn += [
            _line(left, height(v), WIDTH - PAD, height(v)),
            _text(left - 8, height(v) + 4, number(v), anchor="end"),
        ]
    for i, points in enumerate(plot.series.values()):
        places = [(at(i, n, x), height(y)) for n, (x, y) in enumerate(points)]
        if plot.kind == "lines":
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            drawn.append(f'<polyline class="s{i % len(_LIGHT)} line" points="{path}"/>')
        drawn += [
            f'<circle class="s{i % len(_LIGHT)}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
            for x, y in places
        ]
    bent = f"{plot.across} (logarithmic)".lstrip() if _is_logarithmic(plot) else plot.across
    drawn += [*_below(marks, low + 18), *_across(bent, left, low + 38)]
    return drawn, low + (50 if bent else 32)


def _places(plot: Plot, left: float, right: float) -> tuple[At, list[tuple[float, str]]]:
    """Return where on the x axis a point stands, and what to write below the axis.

    Numbers that span two decades stand on a logarithmic axis, and only those that were measured
    are written.
    """
    found = [x for points in plot.series.values() for x, _ in points]
    if any(isinstance(x, str) for x in found):
        return _at_words(plot, left, right)
    numbers = sorted({float(x) for x in found})
    log = _is_logarithmic(plot)
    bent: Callable[[float], float] = math.log10 if log else float
    begin, span = bent(numbers[0]), bent(numbers[-1]) - bent(numbers[0]) or 1.0

    def at(_series: int, _number: int, x: float | str) -> float:
        return left + 12 + (right - left - 12) * (bent(float(x)) - begin) / span

    few = log or len(numbers) <= 10
    round_ones = [v for v in ticks(numbers[-1]) if numbers[0] < v <= numbers[-1]]
    shown = numbers if few else [numbers[0], *round_ones]
    return at, [(at(0, 0, v), number(v)) for v in shown]


def _is_logarithmic(plot: Plot) -> bool:
    found = [x for points in plot.series.values() for x, _ in points]
    numbers = [x for x in found if not isinstance(x, str)]
    return len(numbers) == len(found) and min(numbers) > 0 and max(numbers) / min(numbers) >= 100


def _at_words(plot: Plot, left: float, right: float) -> tuple[At, list[tuple[float, str]]]:
    """Return places above words.  Dots stand side by side there, so that none hides another."""
    words = list(dict.fromkeys(str(x) for points in plot.series.values() for x, _ in points))
    band, many = (right - left) / len(words), len(plot.series)
    lane = band / (many + 1) if plot.kind == "dots" else 0.0

    def at(series: int, number: int, x: float | str) -> float:
        aside = lane * (series - (many - 1) / 2) + (number % 9 - 4) * lane / 12
        return left + band * (words.index(str(x)) + 0.5) + aside

    return at, [(left + band * (n + 0.5), word) for n, word in enumerate(words)]


def _below(marks: Sequence[tuple[float, str]], y: float) -> list[str]:
    """Return the labels of an axis, without those that would run into the one before."""
    drawn, end = [], -math.inf
    for x, words in marks:
        if x - word_width(words) / 2 > end + 4:
            drawn.append(_text(x, y, words, anchor="middle"))
            end = x + word_width(words) / 2
    return drawn


def _across(words: str, left: float, y: float) -> list[str]:
    return [_text((left + WIDTH - PAD) / 2, y, words, anchor="middle")] if words else []


def _lines(word: str) -> list[str]:
    return wrap(word, LABEL_MAX) or [""]


def _text(x: float, y: float, words: str, *, anchor: str = "start", css: str = "") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, series: int) -> str:
    kind = f"s{series % len(_LIGHT)} bar"
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line class="grid" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'
