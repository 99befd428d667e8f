"""All fault windows: the exact point, the fault, and the required result.

A star marks a window that comes straight from the documents this project started from.  The
numbers are those of the catalogue of faults and are used wherever a window is named.
"""

from dataclasses import dataclass

GROUPS = {
    "A": "Election, lease, fencing",
    "B": "Submit and start",
    "C": "Deploying, workers, tasks",
    "D": "Checkpoints",
    "E": "The bounded end",
    "F": "Two-phase commit",
    "G": "Savepoints",
    "H": "Terminal status, tombstone, cleanup",
    "P": "Save modes",
    "S": "Store, disk, network, overload",
    "U": "What users are shown",
}

TABLE = """
A01  | leader is idle | leader killed | a new leader within two leases
A02  | elected, records not read | leader killed | the next one reads them
A03 *| some jobs taken over | second leader killed | each job restored once by the third
A04  | about to write | leader paused for 3 leases | its write is refused, it steps down
A05  | table commit sent, no answer yet | leader paused | one snapshot
A06  | deposed leader answers "already done" | pause, lost answer | the answer does not count
A07  | lease renewed, answer lost | silent store | no second term, no needless step down
A08  | elected, answer lost | silent store | it recognises itself
A09  | two candidates at once | race | one wins
A10  | leader cut from the store | partition | it gives no orders, another leads
A11  | leader cut from the workers | partition | it stays leader, no storm of restarts
A12  | leader cut from the store one way | partition | as A10
A13  | date of the leader jumps an hour | clock | no election, steady checkpoints
A14  | date of a candidate jumps an hour | clock | no early takeover
A15  | store hangs for 10 s | slow disk | few elections, jobs unharmed
A16  | store restarts its leases | store failover | a longer lease, nothing else
A17  | leaders killed one after another | kill loop | terms grow, jobs continue
A18  | a record of a newer version | rolling upgrade | the master refuses to lead and says so
A19  | worker has seen a later term | late order | refused
A20  | SQLite file shared by two hosts | misuse | refused at start
B01  | request in, record not written | leader killed | the client repeats, one incarnation
B02  | record written, no answer | leader killed | the repeat is confirmed
B03  | record written, pipelines not | leader killed | cannot be: one step
B04  | planned, not placed | leader killed | the next leader deploys
B05  | placed, not deployed | leader killed | the next leader deploys
B06  | one submit at an old and a new leader | pause, repeat | one incarnation
B07  | job waits for slots | leader killed | order kept, started once
B08  | a job cannot be restored | poisoned job | it fails with a reason, others continue
B09  | submit while the store is down | outage | nothing half-written
B10  | many submits on their way | leader killed | every accepted one exists
C01 *| task started, no answer yet | leader killed | the task is not started again
C02 *| answer in, RUNNING not written | leader killed | it becomes RUNNING, one instance
C03 *| half of the tasks deployed | leader killed | the rest follows, the first half runs on
C04 *| two deploys of one attempt | repeated | one instance
C05 *| task ends just before a deploy | race | a new attempt only if the record asks for it
C06 *| task alive and stuck | hang | found by lack of progress, next attempt
C07  | worker silent | worker killed | next attempt from the last checkpoint
C08  | worker back before it is missed | fast restart | found by its incarnation
C09  | worker cut off, still reading | partition | its answers and files do not count
C10  | the cut heals | partition | the old attempt is stopped
C11  | worker and leader die together | both killed | no stale entry counts
C12  | all workers die | workers killed | the job waits and continues
C13 *| failure sent to a dying leader | leader killed | sent again to the next
C14 *| cleanup while reports still come | worker killed | reports change nothing
C15 *| worker of a job without retries lost | worker killed | FAILED, cleaned up, no hang
C16  | cancel recorded, tasks not informed | leader killed | CANCELED nevertheless
C17  | task of a former incarnation left | same id again | never adopted, stopped
C18  | driver dead, executors linger | driver killed | their files are never committed
C19  | a twin of a Spark task ends late | speculation | only the winner's files count
C20  | worker dies while it answers | worker killed | that checkpoint fails, the next works
C21  | slots of an ended job | leader killed | free after the takeover
C22  | worker joins with a wrong token | hostile | refused, noted
C23  | worker is drained | none | its tasks move; no failure, no retry
C24  | tasks leave a drained worker | leader killed | handed over once, by the next
C25  | tasks leave a drained worker | next worker killed | nothing fails, they leave later
C26  | worker is asked to stop | none | its tasks move, then it exits
C27  | worker is drained, no room elsewhere | none | the tasks stay there, and the reason is shown
D01  | number reserved, no barrier sent | leader killed | the number is skipped
D02  | some tasks have the barrier | leader killed | a new number, no mixed answers
D03  | all answers in, nothing stored | leader killed | it does not exist; nothing visible
D04  | blob stored, pointer not | leader killed | the blob is not used, and removed later
D05 *| complete, not committed | leader killed | committed first by the next leader
D06  | committed, tasks not informed | leader killed | sent again, no second commit
D07  | some tasks informed | lost message | the next barrier informs them
D08  | completion written, answer lost | silent store | read back, one truth
D09  | answer of a failed attempt | late | thrown away with its files
D10  | answer twice | repeated | counted once
D11  | barrier after a later one | reordered | refused
D12  | last answer at the deadline | race | complete or aborted, never both
D13  | blob store refuses five times | outage | checkpoints fail, the job runs
D14  | latest blob cut short | torn file | the one before it or a clear failure, never the start
D15  | latest blob missing | lost file | as D14
D16  | object store without atomic rename | semantics | no half object is seen
D17  | no space for a blob | full disk | aborted, continues when there is space
D18  | blob takes very long | slow disk | no overlap, tasks run on
D19  | a source ended, then a takeover | leader killed | checkpoints continue
D20  | schema-change checkpoint, flag not cleared | leader killed | repeated once
D21  | kept checkpoints after five takeovers | leaders killed | within the bound
D22  | date goes back between two | clock | the next comes on time
D23  | 10,000 answers, loop or store busy | overload | no worker is declared dead
D24 *| tasks restart while a commit runs | race | the commit counts once
D25  | some tasks are not back yet | reordered | no partial checkpoint
E01 *| end reported, not written | leader killed | not confirmed, so reported again
E02 *| one of three ended | leader killed | checkpoints continue, it finishes
E03 *| all ended, no final checkpoint | leader killed | the next leader takes it at once
E04 *| final barrier out | leader killed | a new number, one final
E05  | final complete, not committed | leader killed | committed, then FINISHED
E06  | final commit visible | leader killed | no second commit, FINISHED
E07  | FINISHED, tasks not informed | leader killed | stopped, never restored
E08 *| E02, and again before the others end | second leader killed | it still finishes
E09 *| two reports at once | race | both count
E10 *| stored set damaged | corruption | the job is reported as unreadable, never taken for empty
E11 *| set cannot be written | outage | no confirmation, reported again
E12  | worker of an ended source dies | worker killed | its entry is void
E13  | the same with the leader, worker back at once | both killed | as E12
E14 *| one of two pipelines ended | leader killed | counted for each pipeline
E15  | one of two pipelines final | both killed | it is not run again
E16  | checkpoint on its way as the last one ends | race | it ends first, then the final
E17  | report reaches the next incarnation | late | refused
E18 *| restored three times | leaders killed | nothing changes
E19 *| record of an older version lacks the set | upgrade | empty, sources report again
E20  | worker lost after the final checkpoint | worker killed | FINISHED
E21 *| takeover against end | leader killed | kept on takeover, gone at the end
F01  | staged, not in an answer | worker killed | not used; the rows are read again
F02 *| answered, attempt fails | worker killed | its files are dropped
F03 *| all answered, one attempt fails | task failed | only the new try's files commit
F04 *| checkpoint aborted, writers alive | timeout | files carried once
F05 *| complete, commit not sent | leader killed | committed under its own number
F06 *| commit applied, no answer | leader killed | found done
F07  | table does not answer | silent table | read again, no second commit
F08  | zombie commit between question and commit | pause | conflict, asked again, skipped
F09  | two commits owed | leader killed | in order, each under its number
F10  | table refuses for good | table error | FAILED with the reason, later ones wait
F11  | foreign commit in between | race | tried again, ours once
F12  | our snapshots expired | expiry | the durable number prevents a second commit
F13 *| watermarks 1000 and 0 | none | 0
F14  | idle writer returns behind | none | it never decreases
F15  | every writer idle | none | the watermark is kept
F16 *| committed, hooks not run | leader killed | they run
F17 *| hooks ran, not recorded | leader killed | repeated
F18  | hook fails | error | retried, the commit stays
F19 *| masters are paused | pause | tasks keep writing
F20  | older checkpoint whole but behind | torn file | refused, not replayed
F21  | older savepoint used again | operator | refused; an explicit flag allows it
F22 *| same master leads again | race | a fresh instance
F23 *| files reported again | repeated | committed once
F24 *| answer of a stale attempt | late | refused
F25  | one of two tables has it | leader killed | the other gets it
F26  | cancelled with a commit on its way | same table again | incarnations never overlap
F27  | empty entries in the record | serialising | read back as written
F28  | restarts in one incarnation | leaders killed | one commit writer
F29  | Delta log without put-if-absent | misuse | refused
F30  | staged file removed from outside | operator | a clear failure
F31  | storing the checkpoint fails | error | aborted at once, not at the timeout
F32 *| many writers in one checkpoint | load | no write for each writer
F33  | ended by force, a commit on its way | silent table | listed; the next one finds or commits it
F34  | ended by force before a former commit | silent table | listed; finished by a later run
G01  | request recorded, no barrier | leader killed | done by the next leader
G02  | some answers in | killed | as G01
G03  | saved, status not written | leader killed | SAVEPOINT_DONE, not restored
G04  | savepoint as the input ends | race | one of the two
G05  | source too busy | slow | bounded; RUNNING with the reason
G06  | two requests | repeated | one savepoint
G07  | resumed, no own checkpoint | both killed | from the savepoint
G08  | resumed, one own checkpoint | both killed | from the own one
G09  | savepoint damaged | torn file | refused before a task starts
G10  | one of two pipelines cannot save | lost messages | no half savepoint
G11  | savepoint while its job is cleaned up | cleanup | kept
G12  | cancelled, then continued | leader killed | every row once, from its last commit on
G13  | failed, then continued | worker, leader killed | every row once, from its last commit on
G14  | complete, not visible, the job failed | bad table, leader killed | the next one shows it
H01  | failure decided, not written | leader killed | one outcome
H02 *| terminal written, duty to clean up not | leader killed | cannot be: one record
H03 *| terminal, cleanup not due | leader killed | cleaned up, never shown running
H04 *| H03, and the next one dies too | second leader killed | the third cleans up
H05 *| some things removed | leader killed | finished by the next
H06  | everything removed except the record | leader killed | the record is removed
H07 *| report while there is a tombstone | late | nothing happens
H08 *| report after the cleanup | late | nothing is rebuilt
H09 *| same id while there is a tombstone | same id again | refused with reason and time
H10 *| cleanup of a paused leader | pause, same id again | the new incarnation is unharmed
H11  | same id from its savepoint at once | same id again | handed over; the old one has a grave
H12  | date jumps by a day | clock | the tombstone is kept for its time
H13 *| every key of a job | any | gone
H14  | many tombstones at a takeover | load | jobs do not wait for them
H15 *| job record without pipelines | corruption | reported as unreadable
H16 *| records cannot be read at takeover | outage | read again, not taken for running
H17  | takeover without workers | workers killed | cleaned up nevertheless
H18  | history | none | answers, and is bounded
P01 *| worker looks at its tables | worker paused, another continues | rows that are shown stay
P02 *| worker looks at its tables | hang, another attempt continues | rows that are shown stay
P03  | first commit sent, no answer yet | leader killed | emptied once, with the first rows
P04  | another pipeline has shown rows of the table | none | its first commit removes nothing
P05  | restore, save modes remove data | none | a table that the savepoint knows keeps its rows
S01  | store down for a while | outage | jobs run on
S02  | store down for very long | outage | orphans stop, then recover
S03  | store down at takeover | outage | no job is dropped
S04  | each call succeeds without an answer | silent store | everything holds
S05  | one call in a hundred fails | flaky store | progress
S06  | store loses answered commits | lost writes | masters stop and say so
S07  | power loss after a commit | power | the commit is there
S08  | SQLite file damaged | corruption | refuses to start
S09  | store has no space | full disk | clear errors, no half state
S10  | slow, lossy, repeating network | poor network | progress
S11  | nodes clogged one by one | partition | heals
S12  | peer vanishes in a request | half-open | a bounded wait, asked elsewhere
S13  | address of a master changes | environment | workers find it
S14  | five times the requests at takeover | overload | recovery comes first
S15  | loop of the leader blocked | pause | it deposes itself
S16  | no more file descriptors | environment | a clear failure
S17  | worker is paused | pause | as C09
U01 *| no checkpoint completes, tasks alive | lost barriers | STALLED, with the reason
U02 *| takeover | leader killed | the age continues
U03  | standby asked | pause | the durable answer, with its revision
U04 *| tombstone listed | none | finished, never running
U05 *| FAILED, and still a task somewhere | takeover | never RUNNING again
U06  | dates of two masters an hour apart | takeover | a healthy job stays OK, a stalled one STALLED
U07  | complete, the table does not answer | outage, takeover | STALLED, with the reason
U08  | committed, hooks fail | outage | STALLED, with the reason
U09  | final checkpoint, the table does not answer | outage | STALLED, with the reason
"""

NOT_YET = {
    "A20": "about a real file system; belongs to the SQLite store's tests",
    "C22": "workers have no tokens in simulation; belongs to the wire server's tests",
    "D16": "about a real object store",
    "D20": "schema changes are not part of the control plane yet",
    "F29": "about Delta's log stores",
    "S07": "needs a real machine; the SQLite store sets synchronous=FULL",
    "S08": "about a real file; belongs to the SQLite store's tests",
    "S13": "needs real addresses",
    "S14": "needs the REST server",
    "S16": "needs a real operating system",
}


@dataclass(frozen=True)
class Window:
    """One window."""

    id: str
    seed: bool
    point: str
    fault: str
    expected: str

    @property
    def group(self) -> str:
        """The group's letter."""
        return self.id[0]


def _windows() -> tuple[Window, ...]:
    found = []
    for line in TABLE.strip().splitlines():
        name, point, fault, expected = (part.strip() for part in line.split("|"))
        found.append(Window(name[:3], name.endswith("*"), point, fault, expected))
    return tuple(found)


WINDOWS = _windows()
