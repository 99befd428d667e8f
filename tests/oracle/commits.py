"""F. Commits: every complete checkpoint shows once, whole, in order, under its own number."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from holdfast.core.checkpoint import Completed
from holdfast.core.commit import CommitStatus
from holdfast.core.job import TERMINAL, JobStatus
from holdfast.core.pipeline import FAILED, OVER, PipelineRecord
from holdfast.master.commit_loop import commit_user
from tests.oracle.events import Deaf, Listen, Publish, Read, Removed, Snapshot, Sweep
from tests.oracle.story import Life, Part, Story


def rows(story: Story) -> Iterator[str]:
    """I43 I44: a finished job shows every row once; any other shows none twice."""
    seen: dict[tuple[str, Life], Counter[Any]] = defaultdict(Counter)
    for (table, user), snapshots in story.snapshots.items():
        owner = story.owner(user)
        for file in (f for s in snapshots if owner for f in s.files):
            seen[(table, owner[0].life)].update(story.rows.get(file, ()))  # type: ignore[index]
    for (table, life), counted in seen.items():
        doubled = [r for r, n in counted.items() if n > 1]
        if doubled:
            yield f"I44 {table} shows {len(doubled)} rows of {life.job} twice"
    for life, jobs in story.jobs.items():
        if jobs[-1].status is JobStatus.FINISHED and story.expected.get(life.job):
            wanted = story.expected[life.job] - before(story, life)
            for table in sorted({t for t, owner in seen if owner.job == life.job}) or ["any"]:
                lost = wanted - set(seen[(table, life)])
                if lost:
                    yield f"I43 {table} lacks {len(lost)} rows of {life.job}, which is FINISHED"


def before(story: Story, life: Life) -> set[tuple[str, int]]:
    """Return the rows that an earlier life has shown, up to the savepoint this one began at."""
    parts = [p for p in story.pipelines if p.life == life]
    begun = [(s, at) for p in parts for s, at in story.restored(p).items()]
    return {(source, row) for source, at in begun for row in range(int(str(at)))}


def snapshots(story: Story) -> Iterator[str]:
    """I45 I48: a user's numbers grow, each shows once, and a file is added once."""
    shown: Counter[str] = Counter()
    for (table, user), found in story.snapshots.items():
        ids = [s.number for s in found]
        if story.owner(user) and ids != sorted(set(ids)):
            yield f"I45 commits of {user} to {table} are not in order or not unique: {ids}"
        for snapshot in found:
            shown.update(snapshot.files)
    for file, times in shown.items():
        if times > 1:
            yield f"I48 {file} was added {times} times"


def filters(story: Story) -> Iterator[str]:
    """I46 I52: each try to commit starts from a read that says it is not yet there."""
    known: dict[tuple[str, str, str], Read] = {}
    for event in story.events:
        if isinstance(event, Read):
            known[(event.process, event.table, event.user)] = event
        elif isinstance(event, Publish):
            read = known.pop((event.process, event.table, event.user), None)
            if read is None:
                yield f"I52 {event.user} tried {event.number} again without reading the table"
            elif read.version != event.version or read.committed >= event.number:
                yield f"I46 {event.user} tried {event.number} on a version it had not checked"


def users(story: Story) -> Iterator[str]:
    """I47: the commit user follows from job, life, pipeline and sink."""
    lives = {life.job for life in story.jobs}
    for snapshot in story.of(Snapshot):
        owner = story.owner(snapshot.user)
        if owner is None and snapshot.user.partition(".")[0] in lives:
            yield f"I47 {snapshot.user} is not the name of a pipeline's commits"
        elif owner and commit_user(*owner[0], snapshot.table) != snapshot.user:
            yield f"I47 {snapshot.user} committed to {snapshot.table}"


def contents(story: Story) -> Iterator[str]:
    """I8 I49 I51: a commit is exactly what its checkpoint holds, whoever makes it."""
    for (_, user), found in story.snapshots.items():
        owner = story.owner(user)
        if owner is None:
            continue
        part, sink = owner
        checkpoints = {c.number: c for c in story.completed[part]}
        for snapshot in found:
            done = checkpoints.get(snapshot.number)
            if done is None:
                yield f"I51 {user} committed {snapshot.number}, which is no checkpoint of its"
                continue
            files = story.files(done)
            if files is None:
                continue
            wanted, held = set(files.get(sink, ())), set(snapshot.files)
            if held - wanted:
                yield f"I49 {user} committed files that are not in checkpoint {snapshot.number}"
            elif held != wanted:
                yield f"I8 {user} committed a part of checkpoint {snapshot.number}"


def watermarks(story: Story) -> Iterator[str]:
    """I50: a watermark never goes back, and a commit without one carries the last."""
    for (table, user), found in story.snapshots.items():
        last: int | None = None
        for snapshot in found if story.owner(user) else ():
            mark = snapshot.watermark
            if last is not None and (mark is None or mark < last):
                yield f"I50 the watermark of {table} went back from {last} to {mark}"
            last = mark if mark is not None else last


def listeners(story: Story) -> Iterator[str]:
    """I53: listeners run after the commit they belong to, and for each one."""
    ran: set[tuple[str, int]] = set()
    for listen, records in story.walk(Listen):
        owner = story.owner(listen.user)
        state = records.pipeline(owner[0]) if owner else None
        if state and listen.number > state.commits.through:
            yield f"I53 listeners ran for {listen.number} before its commit"
        if owner and _misled(story, listen, owner[0]):
            yield f"I53 listeners heard of other files than commit {listen.number} has"
        ran.add((listen.user, listen.number))
    deaf = {(e.job, e.incarnation, e.sinks) for e, _ in story.walk(Deaf)}
    for part, states in story.pipelines.items():
        user = commit_user(*part, "")
        if (part.job, part.incarnation, states[-1].sinks) in deaf:
            continue
        for through in {s.commits.listened for s in states} - {0}:
            if (user, through) not in ran:
                yield f"I53 no listener ran for {through} of {part.job}"


def remembered(story: Story) -> Iterator[str]:
    """I53 I50: what listeners remember, and the watermark, go with a savepoint."""
    for part, states in story.pipelines.items():
        began = states[0]
        origin = story.jobs[part.life][0].origin if part.life in story.jobs else ""
        job, _, incarnation = origin.partition("/")
        former = Part(job, incarnation, part.number) if origin else None
        if former is None or not story.pipelines.get(former):
            continue
        left = story.pipelines[former][-1].commits
        if left.listeners != began.commits.listeners:
            yield f"I53 listeners of {part.job} forgot what they knew at its savepoint"
        if left.watermark != began.commits.watermark:
            yield f"I50 {part.job} forgot the watermark of its savepoint"


def _misled(story: Story, listen: Listen, part: Part) -> bool:
    """Whether listeners were told of other files than the commit's checkpoint holds."""
    done = next((c for c in story.completed[part] if c.number == listen.number), None)
    files = story.files(done) if done else None
    if files is None or listen.files is None:
        return False
    return sorted(f for held in files.values() for f in held) != sorted(listen.files)


def sinks(story: Story) -> Iterator[str]:
    """I55: no sink gets ahead of another by more than one commit."""
    shown: set[tuple[Part, str, int]] = set()
    for snapshot in story.of(Snapshot):
        owner = story.owner(snapshot.user)
        if owner is None:
            continue
        part, sink = owner
        shown.add((part, sink, snapshot.number))
        for done in story.completed[part]:
            if done.number >= snapshot.number:
                break
            for other in story.files(done) or ():
                if (part, other, done.number) not in shown:
                    yield f"I55 {sink} shows {snapshot.number} and {other} lacks {done.number}"


def sweeping(story: Story) -> Iterator[str]:
    """I56: no staged file goes that a record still needs, or while its job may need it."""
    shown = {f for s in story.of(Snapshot) for f in s.files}
    for sweep, records in story.walk(Sweep):
        for file in sweep.files:
            if file in shown:
                yield f"I56 {file} was removed and is part of a table"
        for key, record in records.items.items():
            if not isinstance(record, PipelineRecord) or record.status in OVER:
                continue  # what it owes is in its saved state
            if _needs(story, record.commits.waiting) & set(sweep.files):
                yield f"I56 a file was removed that {key} still has to commit"
        for name, state in records.states.items():
            needed = {f for p in state.parts for f in _needs(story, p.waiting)}
            if (needed - shown) & set(sweep.files) and not state.removed:
                yield f"I56 a file was removed that saved state {name} has to commit"


def _needs(story: Story, waiting: tuple[Completed, ...]) -> set[str]:
    found = [story.files(done) or {} for done in waiting]
    return {f for files in found for several in files.values() for f in several}


def settled(story: Story) -> Iterator[str]:
    """I51: a job that ended without failure, and not by force, has committed all it owed."""
    for life, jobs in story.jobs.items():
        end = jobs[-1]
        if end.status not in TERMINAL or end.status is JobStatus.FAILED or end.forced:
            continue
        for part, states in story.pipelines.items():
            last = states[-1]
            owes = last.commits.status is not CommitStatus.SETTLED and last.status is not FAILED
            if part.life == life and owes:
                yield f"I51 {life.job} is {jobs[-1].status} and a commit is still owed"


def stays(story: Story) -> Iterator[str]:
    """I79: only a commit removes what is shown: once for a life, before anything of its own, and
    nothing from a table that the life's savepoint knows, nor what another life of its line showed.
    """
    for removed in story.of(Removed):
        if removed.files:
            yield f"I79 {len(removed.files)} of what {removed.table} showed went without a commit"
    lives: dict[str, Life] = {}
    emptied: set[tuple[str, Life]] = set()
    for snapshot in story.of(Snapshot):
        owner = story.owner(snapshot.user)
        if owner is None:
            continue
        life, table = owner[0].life, snapshot.table
        if snapshot.removed:
            if (table, life) in emptied or life in {lives.get(f) for f in snapshot.removed}:
                yield f"I79 {life.job} removed from {table} what it had shown itself"
            others = {lives[f] for f in snapshot.removed if f in lives} - {life}
            if story.lines.get(life, life) in {story.lines.get(one) for one in others}:
                yield f"I79 {life.job} removed from {table} what another life of its line had shown"
            if table in _known(story, owner[0]):
                yield f"I79 {life.job} emptied {table}, which its savepoint knows"
            emptied.add((table, life))
        lives |= dict.fromkeys(snapshot.files, life)


def _known(story: Story, part: Part) -> set[str]:
    """Return the tables that were opened in the state a pipeline's life began with."""
    states = story.pipelines.get(part)
    content = story.contents.get(states[0].restore or "") if states else None
    return {o.table for o in content.opened or ()} if content else set()


CHECKS = (
    rows, snapshots, filters, users, contents, watermarks, listeners, remembered, sinks, sweeping,
    settled, stays,
)  # fmt: skip
