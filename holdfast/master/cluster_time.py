"""The cluster's own time: seconds that leaders have measured, one after the other.  No date counts.

The leader writes it to the store now and then; every standby reads it there and counts on, so the
next leader knows how long the time without one was.  It stops while no process measures, and never
runs ahead of the world: an age that is measured by it is true or too small, never too large.
"""

import logging

import msgspec

from holdfast.master.ports import Clock
from holdfast.store.contract import Item

log = logging.getLogger("holdfast")

CLOCK = "clock"


class ClusterTime:
    """The cluster's time as one master counts it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._base_s = 0.0
        self._since_s = clock.now()
        self.revision = 0

    def now(self) -> float:
        """Return the cluster's time in seconds."""
        return self._base_s + self._clock.now() - self._since_s

    def hear(self, item: Item | None) -> None:
        """Take in what the store says.  What is not new there was counted on from already.

        Another leader's word replaces what was counted here, even if that is more: its records
        carry its time.
        """
        if item is None or item.revision == self.revision:
            return
        self.revision = item.revision
        try:
            self._set(msgspec.json.decode(item.value, type=float))
        except msgspec.DecodeError as error:
            log.warning("ages may be shown too small: %s cannot be read: %s", CLOCK, error)

    def at_least(self, time_s: float) -> None:
        """Take in a time that has passed already."""
        if time_s > self.now():
            self._set(time_s)

    def written(self) -> bytes:
        """Return the present time as the store keeps it."""
        return msgspec.json.encode(round(self.now(), 3))

    def _set(self, time_s: float) -> None:
        self._base_s, self._since_s = time_s, self._clock.now()
