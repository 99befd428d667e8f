"""A. Leadership and fencing: one leader in a term, and only it writes, orders and answers."""

from collections import defaultdict, deque
from collections.abc import Iterator

from tests.oracle.events import Client, Event, Heard, Lease, Order, Proof, Took, Write
from tests.oracle.story import Story


def terms(story: Story) -> Iterator[str]:
    """I1 I2: terms only grow, and every applied write was made by the leader of its term."""
    leader, last = 0, 0
    holder = ""
    for write in story.of(Write):
        if write.key != "leader":
            if write.term != leader or write.process != holder:
                yield f"I2 a write of {write.key} by a deposed master was applied"
        elif write.deleted:
            leader = 0
        else:
            if leader:
                yield "I1 two masters led at once"
            if write.revision <= last:
                yield "I1 a term did not grow"
            leader = last = write.revision
            holder = write.process


def obedience(story: Story) -> Iterator[str]:
    """I3: a worker never acts on an order of a lower term than it has seen."""
    seen: dict[str, int] = {}
    for took in story.of(Took):
        if took.term < seen.get(took.process, 0):
            yield f"I3 {took.process} acted on {took.order} of a former term"
        seen[took.process] = max(took.term, seen.get(took.process, 0))


def answers(story: Story) -> Iterator[str]:
    """I4: a yes needs an answer of the store about the record after the question came."""
    # Of each question the moments it was heard, and whether something was proven since.
    asked: dict[tuple[str, ...], deque[list[bool]]] = defaultdict(deque)
    keys: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for event in story.events:
        match event:
            case Proof():
                for key in event.guards:
                    for question in keys.get((event.process, key), ()):
                        for heard in asked[question]:
                            heard[0] = True
            case Heard() | Order(order="SourceEndAck") | Client(did="asks" | "was answered"):
                question, key = _question(event)
                if isinstance(event, Heard) or (isinstance(event, Client) and event.did == "asks"):
                    asked[question].append([False])
                    keys[(question[0], key)].add(question)
                elif not asked[question] or not asked[question].popleft()[0]:
                    yield f"I4 {question[0]} said yes to {question[1]} without proof that it leads"


def _question(event: Event) -> tuple[tuple[str, ...], str]:
    """Return who was asked what, and the key of the record that decides it."""
    match event:
        case Client():
            key = f"job/{event.job}"
            if event.what == "forget":
                key = f"saved/{event.job}/{event.incarnation}"
            elif event.what in ("drain", "undrain"):
                key = "drains"
            return (event.by, event.what, event.job, event.incarnation), key
        case Heard() | Order():
            worker = event.worker if isinstance(event, Heard) else event.to
            task = (event.job, event.incarnation, event.task, str(event.attempt))
            key = f"pipeline/{event.job}/{event.pipeline:04}"
            return (event.process, "SourceEndReport", *task, event.source, worker), key
    raise AssertionError(f"{event} asks nothing")


def freshness(story: Story) -> Iterator[str]:
    """I5: a leader orders nothing unless its lease was confirmed lately by its own clock."""
    kept: dict[str, float] = {}
    for event in story.events:
        if isinstance(event, Lease):
            kept[event.process] = event.at
        elif isinstance(event, Order):
            since_s = event.at - kept.get(event.process, float("-inf"))
            # Times in a story are rounded.
            if since_s > story.setting.act_s + 0.001:
                yield f"I5 {event.process} sent {event.order} {since_s:.1f} s after its lease"


def mirrors(story: Story) -> Iterator[str]:
    """I7: a record is only replaced by someone who names the revision that stands."""
    standing: dict[str, int] = {}
    for write in story.of(Write):
        if write.key.startswith(("job/", "pipeline/")):
            named = write.guards.get(write.key)
            if named != standing.get(write.key, 0):
                yield f"I7 {write.key} was replaced by a master that had not read it"
        standing[write.key] = 0 if write.deleted else write.revision


CHECKS = (terms, obedience, answers, freshness, mirrors)
