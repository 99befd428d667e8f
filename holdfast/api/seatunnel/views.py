"""SeaTunnel's REST v2 answers: its names, its types, its quirks.

Where its code and its documents differ, both spellings are here.  What is ours is added at the end
of each shape.  Numbers in `metrics` and in the overview are strings, dates are
`yyyy-MM-dd HH:mm:ss` in this machine's zone.
"""

from typing import Any

import msgspec

UNSET = msgspec.UNSET
UnsetType = msgspec.UnsetType


class OverviewInfo(msgspec.Struct):
    """1. The cluster in figures; all strings."""

    projectVersion: str
    gitCommitAbbrev: str
    totalSlot: str
    unassignedSlot: str
    workers: str
    works: str
    runningJobs: str
    finishedJobs: str
    failedJobs: str
    cancelledJobs: str
    pendingJobs: str
    leader: str = ""
    term: str = ""
    stalledJobs: str = "0"
    lateJobs: str = "0"


class Jar(msgspec.Struct):
    """A jar of a job; Holdfast's jobs have none."""

    jarPath: str


class SinkPromise(msgspec.Struct):
    """What a sink promises about each row."""

    sink: str
    guarantee: str


class RestartReason(msgspec.Struct):
    """Why an attempt ended."""

    pipelineId: int
    task: str
    attempt: int
    reason: str


class PipelineDiagnostics(msgspec.Struct):
    """How often a pipeline was restored, and when it entered each state."""

    pipelineId: int
    pipelineStatus: str
    restoreCount: int
    maxRestoreCount: int
    stateTimestamps: dict[str, int]


class Diagnostics(msgspec.Struct):
    """The pipelines of a job."""

    pipelines: list[PipelineDiagnostics]


class JobInfo(msgspec.Struct, omit_defaults=False):
    """2, 5, 6. A job.  The fields below `metrics` are ours, but for those of a finished job."""

    jobId: str
    jobName: str | UnsetType = UNSET
    jobStatus: str | UnsetType = UNSET
    envOptions: msgspec.Raw | UnsetType = UNSET
    createTime: str | UnsetType = UNSET
    startTime: str | UnsetType = UNSET
    jobDag: msgspec.Raw | UnsetType = UNSET
    pluginJarsUrls: list[Jar] | UnsetType = UNSET
    isStartWithSavePoint: bool | UnsetType = UNSET
    metrics: dict[str, str | dict[str, str]] | UnsetType = UNSET
    errorMsg: str | UnsetType | None = UNSET
    finishTime: str | UnsetType = UNSET
    finishedTime: str | UnsetType = UNSET
    diagnostics: Diagnostics | UnsetType = UNSET
    incarnation: str | UnsetType = UNSET
    lastCheckpointTime: str | UnsetType | None = UNSET
    secondsSinceLastCheckpoint: float | UnsetType | None = UNSET
    checkpointHealth: str | UnsetType = UNSET
    checkpointHealthReason: str | UnsetType = UNSET
    restartCount: int | UnsetType = UNSET
    restartReasons: list[RestartReason] | UnsetType = UNSET
    explain: str | UnsetType = UNSET
    sinkGuarantees: list[SinkPromise] | UnsetType = UNSET
    committedRows: int | UnsetType | None = UNSET
    watermark: int | UnsetType | None = UNSET
    lagSeconds: float | UnsetType | None = UNSET


class JobSummary(msgspec.Struct):
    """3. A running job in short."""

    jobId: str
    jobName: str
    jobStatus: str
    createTime: str
    startTime: str
    checkpointHealth: str
    secondsSinceLastCheckpoint: float | None
    metrics: dict[str, str | dict[str, str]] | UnsetType = UNSET


class Page(msgspec.Struct):
    """A part of a list."""

    data: list[JobInfo]
    total: int


class QueueSummary(msgspec.Struct):
    """4. The jobs that wait to start."""

    size: int
    scheduleStrategy: str
    oldestEnqueueTimestamp: int | None
    newestEnqueueTimestamp: int | None
    lackingTaskGroups: int


class WorkerSnapshot(msgspec.Struct):
    """4. A worker's room.  What a worker does not report is None."""

    address: str
    tags: dict[str, str]
    totalSlots: int
    freeSlots: int
    dynamicSlot: bool
    cpuUsage: float | None
    memUsage: float | None
    runningJobIds: list[str]


class ClusterSnapshot(msgspec.Struct):
    """4. The room of all workers."""

    totalSlots: int
    freeSlots: int
    assignedSlots: int
    workerCount: int
    workers: list[WorkerSnapshot]


class TaskGroupLocation(msgspec.Struct):
    """4. Which task."""

    jobId: str
    pipelineId: int
    taskGroupId: str


class TaskGroupDiagnostic(msgspec.Struct):
    """4. Why a task has no worker."""

    taskGroupLocation: TaskGroupLocation
    taskFullName: str
    allocated: bool
    failureReason: str | None
    failureMessage: str | None


class PendingPipeline(msgspec.Struct):
    """4. A pipeline that waits."""

    pipelineId: int
    pipelineName: str
    totalTaskGroups: int
    allocatedTaskGroups: int
    lackingTaskGroups: int
    taskGroupDiagnostics: list[TaskGroupDiagnostic]


class PendingJob(msgspec.Struct):
    """4. A job that waits to start."""

    jobId: str
    jobName: str
    pendingSourceState: str
    jobStatus: str
    enqueueTimestamp: int
    checkTime: int
    waitDurationMs: int
    checkCount: int
    totalTaskGroups: int
    allocatedTaskGroups: int
    lackingTaskGroups: int
    failureReason: str | None
    failureMessage: str | None
    tagFilter: dict[str, str]
    blockingJobIds: list[str]
    pipelines: list[PendingPipeline]
    lackingTaskGroupDiagnostics: list[TaskGroupDiagnostic]


class PendingJobs(msgspec.Struct):
    """4. What waits, and what room there is."""

    queueSummary: QueueSummary
    clusterSnapshot: ClusterSnapshot
    pendingJobs: list[PendingJob]


class Submitted(msgspec.Struct):
    """8, 9, 10. A job that was accepted."""

    jobId: str
    jobName: str


class StopJob(msgspec.Struct):
    """11. Which job is to stop, and how.  `force`: at once, and no savepoint."""

    jobId: str | int
    isStopWithSavePoint: bool = False
    force: bool = False


class Stopped(msgspec.Struct):
    """11. A job that will stop."""

    jobId: str


class StoppedOne(msgspec.Struct):
    """12. A job that will stop; a number where the id is one."""

    jobId: int | str


class Status(msgspec.Struct):
    """14. Whether it was done."""

    status: str
    message: str


class LogLink(msgspec.Struct):
    """15. A log that can be read."""

    node: str
    logLink: str
    logName: str


class ThreadView(msgspec.Struct):
    """19. A thread of this process and where it is."""

    threadName: str
    threadId: int
    threadState: str
    isDaemon: bool
    stackTrace: list[str]


class RuleOption(msgspec.Struct):
    """23. An option of a connector."""

    key: str
    type: str
    defaultValue: Any
    description: str
    fallbackKeys: list[str]
    optionValues: list[str] | None


class RequiredRule(msgspec.Struct):
    """23. Options that must be there."""

    ruleType: str
    options: list[RuleOption]
    expression: str | None
    expressionTree: Any


class OptionRule(msgspec.Struct):
    """23. What a connector takes."""

    optionalOptions: list[RuleOption]
    requiredOptions: list[RequiredRule]
    conditionRules: list[Any]
    valueConstraints: list[Any]


class OptionRules(msgspec.Struct):
    """23. A connector and its options."""

    engineType: str
    pluginType: str
    pluginName: str
    optionRule: OptionRule


class CheckpointCounts(msgspec.Struct):
    """21. How many checkpoints, since this leader took over."""

    triggered: int
    completed: int
    failed: int
    inProgress: int
    restored: int


class CheckpointInfo(msgspec.Struct):
    """21, 22. A checkpoint that is over.  None: it was before this leader's time."""

    checkpointId: int
    checkpointType: str
    status: str
    triggerTimestamp: int | None
    completedTimestamp: int | None
    durationMillis: int | None
    stateSize: int | None
    failureReason: str | None


class CheckpointUnderWay(msgspec.Struct):
    """21. A checkpoint on its way."""

    checkpointId: int
    checkpointType: str
    triggerTimestamp: int
    acknowledged: int
    total: int


class CheckpointOf(msgspec.Struct):
    """21, 22. A checkpoint and its pipeline."""

    pipelineId: int
    checkpoint: CheckpointInfo


class PipelineCheckpoints(msgspec.Struct):
    """21. The checkpoints of one pipeline."""

    pipelineId: int
    counts: CheckpointCounts
    latestCompleted: CheckpointInfo | None
    latestFailed: CheckpointInfo | None
    latestSavepoint: CheckpointInfo | None
    inProgress: list[CheckpointUnderWay]
    history: list[CheckpointOf]


class JobCheckpoints(msgspec.Struct):
    """21. The checkpoints of a job."""

    jobId: str
    updatedAt: int
    pipelines: list[PipelineCheckpoints]


class EdgeMetrics(msgspec.Struct):
    """24. Between two stages.  Spark plans them as one, so there is no queue: None."""

    queueId: str
    targetVertexId: int
    emitBlockedNs: int | None
    bpRatio: float | None
    queueSize: int | None
    queueCapacity: int | None
    queueFillRatio: float | None


class VertexMetrics(msgspec.Struct):
    """24. A stage.  Spark does not report how long each stage of one plan took: None."""

    vertexId: int
    sourceReadNs: int | None = None
    sourceIdleNs: int | None = None
    sourceReadRatio: float | None = None
    sourceIdleRatio: float | None = None
    transformProcessNs: int | None = None
    transformRecordsIn: int | None = None
    transformRecordsOut: int | None = None
    transformBusyRatio: float | None = None
    sinkWriteNs: int | None = None
    sinkRecordsIn: int | None = None
    sinkBusyRatio: float | None = None
    sinkWriteNsPerRecord: float | None = None


class RealtimeJob(msgspec.Struct):
    """24. A running job and its rates now."""

    jobId: str
    jobName: str
    windowMs: int
    sourceReceivedQPS: float
    sinkWriteQPS: float
