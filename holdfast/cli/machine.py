"""The verbs about this machine."""

from holdfast.cli.terminal import screen
from holdfast.worker import aot


def warmup() -> None:
    """Prepare this machine so that later runs start fast (about half a minute, once)."""
    aot.warm_up(lambda said: screen.print(said, markup=False))
