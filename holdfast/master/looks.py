"""Have a worker look at what a job names: `check --connect` on a cluster.

Kept in this master's memory alone: a look changes nothing, so after a failover the client's next
question starts another one.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.errors import Unavailable, UserError
from holdfast.master.leader import Leader
from holdfast.wire.messages import Heartbeat, LookAtJob, Looked, ToWorker

WITHIN_S_MAX = 600.0
WAIT_S_MAX = 20.0
"""How long one request waits for an answer; then the client asks again."""

GRACE_S = 5.0
"""How long a worker may take to say that its time is over."""

KEPT_S = 60.0
"""How long an answer is kept for a client whose connection broke."""

GOING_MAX = 32
SETTLED_S = 3.0
"""How long after its election a leader assumes that every worker has reported."""


class LookLinks(Protocol):
    """What this master's links to its workers are asked for (process/links.py)."""

    looked: Callable[[Looked], None]
    gone: Callable[[str], None]

    def linked(self, incarnation: str) -> bool: ...
    def send(self, incarnation: str, message: ToWorker) -> None: ...


@dataclass
class Look:
    """One look; `answer` is set once, even if its worker is lost."""

    worker: str
    incarnation: str
    answer: "asyncio.Future[Looked]"
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


class LookRequests:
    """The looks that clients of this master have asked for, each under the client's token."""

    def __init__(self, links: LookLinks) -> None:
        self._links = links
        self._looks: dict[str, Look] = {}
        links.looked = self._looked
        links.gone = self._gone

    def knows(self, request: str) -> bool:
        """Say whether there is a look of that name, done or not."""
        return request in self._looks

    async def wait(self, request: str, wait_s: float) -> Look:
        """Wait for a look; return it, done or not."""
        look = self._looks[request]
        await asyncio.wait({look.answer}, timeout=min(max(0.0, wait_s), WAIT_S_MAX))
        return look

    def begin(
        self, leader: Leader, request: str, spec: str, tags: Mapping[str, str], within_s: float
    ) -> Look:
        """Have a worker begin a look.  Raises UserError if none can."""
        if request in self._looks:
            return self._looks[request]  # the same request came twice at once
        within_s = min(max(1.0, within_s), WITHIN_S_MAX)
        going = [look for look in self._looks.values() if not look.answer.done()]
        if len(going) >= GOING_MAX:
            raise Unavailable(
                f"{GOING_MAX} other checks are under way. Ask again in a moment.", code="look.busy"
            )
        hello = self._choose(leader, tags, [look.incarnation for look in going])
        loop = asyncio.get_running_loop()
        look = Look(hello.worker, hello.incarnation, loop.create_future())
        self._looks[request] = look
        late = f"it did not answer within {within_s:g} s"
        look.timers.append(loop.call_later(within_s + GRACE_S, self._fail, request, late))
        order = LookAtJob(leader.desk.term, request, spec, within_s)
        self._links.send(hello.incarnation, order)
        return look

    def _choose(self, leader: Leader, tags: Mapping[str, str], busy: list[str]) -> Heartbeat:
        """Return the worker with the least to do of those that could run the job."""
        draining = leader.drains.incarnations(leader)
        there = [
            seen.hello
            for incarnation, seen in leader.crew.seen.items()
            if self._links.linked(incarnation)
        ]
        if not there and leader.desk.ports.clock.now() < leader.crew.since_s + SETTLED_S:
            raise Unavailable("This master has just begun to lead. Ask again in a moment.")
        able = [h for h in there if h.looks and h.incarnation not in draining and not h.leaving]
        fit = [h for h in able if tags.items() <= dict(h.tags).items()]
        if fit:
            return min(fit, key=lambda h: (busy.count(h.incarnation), len(h.held), h.worker))
        names = ", ".join(sorted(h.worker for h in there))
        if not there:
            why = "no worker is connected. Start one (holdfast worker)"
        elif able:
            wanted = ", ".join(f"{k} = {v}" for k, v in tags.items())
            why = f"tag_filter asks for {wanted}, which none of the workers has: {names}"
        else:
            why = f"of the workers {names}, each is draining or of an older version"
        raise UserError(
            f"No worker can open what the job names: {why}. To look from this machine instead, give"
            " no masters.",
            code="look.no_worker",
        )

    def _looked(self, answer: Looked) -> None:
        look = self._looks.get(answer.request)
        if look and look.incarnation == answer.incarnation:
            self._end(answer.request, look, answer)

    def _gone(self, incarnation: str) -> None:
        """Answer for a worker whose link has ended."""
        for request, look in list(self._looks.items()):
            if look.incarnation == incarnation:
                self._fail(request, "it was lost in the middle. Nothing was changed; ask again")

    def _fail(self, request: str, why: str) -> None:
        look = self._looks.get(request)
        if look:
            gone = Looked(0, look.worker, look.incarnation, request, failure=why)
            self._end(request, look, gone)

    def _end(self, request: str, look: Look, answer: Looked) -> None:
        if look.answer.done():
            return
        look.answer.set_result(answer)
        for timer in look.timers:
            timer.cancel()
        loop = asyncio.get_running_loop()
        look.timers = [loop.call_later(KEPT_S, self._looks.pop, request, None)]
