"""What a task does with rows that do not fit: it fails, or leaves them out and counts them."""

from dataclasses import dataclass

from holdfast.connect.rejects import Misfit, RejectCounter, RowErrors


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the rows of a slice.  Plain data, sent to Spark's workers."""

    stage: str
    way: RowErrors
    counter: RejectCounter | None

    def of(self, split: int) -> "SplitJudge":
        """Return who judges the rows of one split."""
        return SplitJudge(self, split)


class SplitJudge:
    """Judges the rows of one split: call it with each that does not fit."""

    def __init__(self, judge: Judge, split: int) -> None:
        self._judge = judge
        self._split = split
        self._rows = 0

    def __call__(self, misfit: Misfit) -> None:
        """Count a row, or raise UserError for it."""
        if self._judge.way is not RowErrors.SKIP or self._judge.counter is None:
            raise misfit.error(self._judge.stage)
        self._rows += 1
        self._judge.counter.add(self._split, self._rows)
