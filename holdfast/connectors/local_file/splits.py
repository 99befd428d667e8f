"""Divide the files of a slice among Spark's tasks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

from holdfast.model.tree import Plain

SPLIT_BYTES_MAX = 128 << 20
SPLIT_BYTES_LEAST = 4 << 20
"""Less is not worth a task of its own."""


def divide(files: Sequence[str], cores: int) -> tuple[list[Plain], int]:
    """Return what each task reads, as a list of [path, first byte, end], and the bytes of all.

    All tasks get about as much, in the order of the files, and each core gets as many tasks.
    """
    sizes = [Path(file).stat().st_size for file in files]
    total = sum(sizes)
    rounds = -(-total // (SPLIT_BYTES_MAX * cores))
    count = max(1, min(cores * rounds, total // SPLIT_BYTES_LEAST))
    splits: list[Plain] = []
    for first, end in pairwise(total * n // count for n in range(count + 1)):
        splits.append(_between(files, sizes, first, end))
    return splits, total


def parts_of(split: Plain) -> Iterator[tuple[str, int, int]]:
    """Yield path, first byte and end of each part of a split."""
    yield from cast(list[tuple[str, int, int]], split)


def _between(files: Sequence[str], sizes: Sequence[int], first: int, end: int) -> Plain:
    """Return the parts of files that lie between two places of all bytes, laid end to end."""
    parts: list[Plain] = []
    begins = 0
    for file, size in zip(files, sizes, strict=True):
        low, high = max(first - begins, 0), min(end - begins, size)
        if low < high:
            parts.append([file, low, high])
        begins += size
    return parts
