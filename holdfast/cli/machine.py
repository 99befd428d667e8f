"""The verbs about this machine."""

from holdfast.cli.terminal import screen
from holdfast.spark import startup_cache


def warmup() -> None:
    """Prepare this machine so that later runs start fast (about half a minute, once)."""
    startup_cache.warm_up(lambda said: screen.print(said, markup=False))
