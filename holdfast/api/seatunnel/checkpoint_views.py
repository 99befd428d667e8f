"""SeaTunnel's REST v2 answers about checkpoints and figures of this moment."""

import msgspec


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
    """24. A stage.  Spark does not tell how long each stage of one plan took: None."""

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
