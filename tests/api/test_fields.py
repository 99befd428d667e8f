"""Every endpoint and field of SeaTunnel's REST v2, against a table written from its documents.

`FIELDS` is the table: path, then each field with its type, nested with dots; `[]` steps into a
list and `{}` into a map of any keys.  `s` string, `n` whole number, `f` number, `b` boolean,
`o` object, `l` list, `?` after a type: may be null.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.served import STREAM, Served, served

METRICS = [
    "IntermediateQueueSize", *(
        f"{name}{unit}"
        for name in ("SourceReceived", "SinkWrite", "SinkCommitted")
        for unit in ("Count", "QPS", "Bytes", "BytesPerSeconds")
    ),
]  # fmt: skip
TABLES = [
    f"{name}{unit}"
    for name in ("TableSourceReceived", "TableSinkWrite", "TableSinkCommitted")
    for unit in ("Count", "QPS", "Bytes", "BytesPerSeconds")
]
DAG = """jobDag.jobId:s jobDag.pipelineEdges:o jobDag.pipelineEdges.{}:l
 jobDag.pipelineEdges.{}.[].inputVertexId:s jobDag.pipelineEdges.{}.[].targetVertexId:s
 jobDag.envOptions:o jobDag.vertexInfoMap:l jobDag.vertexInfoMap.[].vertexId:n
 jobDag.vertexInfoMap.[].type:s jobDag.vertexInfoMap.[].vertexName:s
 jobDag.vertexInfoMap.[].tablePaths:l"""
OURS = """incarnation:s lastCheckpointTime:s? secondsSinceLastCheckpoint:f? checkpointHealth:s
 checkpointHealthReason:s restartCount:n restartReasons:l sinkGuarantees:l committedRows:n?
 watermark:n? lagSeconds:f?"""
JOB = f"""jobId:s jobName:s jobStatus:s envOptions:o createTime:s jobDag:o {DAG} pluginJarsUrls:l
 metrics:o {" ".join(f"metrics.{m}:s" for m in METRICS)}
 {" ".join(f"metrics.{m}:o" for m in TABLES)} {OURS}"""
RUNNING = f"{JOB} startTime:s isStartWithSavePoint:b sinkGuarantees.[].guarantee:s"
CHECKPOINT = """checkpointId:n checkpointType:s status:s triggerTimestamp:n? completedTimestamp:n?
 durationMillis:n? stateSize:n? failureReason:s?"""
PENDING = """jobId:s jobName:s pendingSourceState:s jobStatus:s enqueueTimestamp:n checkTime:n
 waitDurationMs:n checkCount:n totalTaskGroups:n allocatedTaskGroups:n lackingTaskGroups:n
 failureReason:s? failureMessage:s? tagFilter:o blockingJobIds:l pipelines:l
 pipelines.[].pipelineId:n
 pipelines.[].pipelineName:s pipelines.[].totalTaskGroups:n pipelines.[].allocatedTaskGroups:n
 pipelines.[].lackingTaskGroups:n pipelines.[].taskGroupDiagnostics:l
 pipelines.[].taskGroupDiagnostics.[].taskGroupLocation.jobId:s
 pipelines.[].taskGroupDiagnostics.[].taskGroupLocation.pipelineId:n
 pipelines.[].taskGroupDiagnostics.[].taskGroupLocation.taskGroupId:s
 pipelines.[].taskGroupDiagnostics.[].taskFullName:s
 pipelines.[].taskGroupDiagnostics.[].allocated:b
 pipelines.[].taskGroupDiagnostics.[].failureReason:s?
 pipelines.[].taskGroupDiagnostics.[].failureMessage:s? lackingTaskGroupDiagnostics:l"""
MONITORING = [
    "host",
    "port",
    "isMaster",
    "nodeRole",
    "coordinator",
    "worker",
    "processors",
    "physical.memory.total",
    "physical.memory.free",
    "swap.space.total",
    "swap.space.free",
    "heap.memory.used",
    "heap.memory.free",
    "heap.memory.total",
    "heap.memory.max",
    "heap.memory.used/total",
    "heap.memory.used/max",
    "minor.gc.count",
    "minor.gc.time",
    "major.gc.count",
    "major.gc.time",
    "load.process",
    "load.system",
    "load.systemAverage",
    "thread.count",
    "thread.peakCount",
    "cluster.timeDiff",
    "event.q.size",
    "executor.q.async.size",
    "executor.q.client.size",
    "executor.q.client.query.size",
    "executor.q.client.blocking.size",
    "executor.q.query.size",
    "executor.q.scheduled.size",
    "executor.q.io.size",
    "executor.q.system.size",
    "executor.q.operations.size",
    "executor.q.priorityOperation.size",
    "executor.q.mapLoad.size",
    "executor.q.mapLoadAllKeys.size",
    "executor.q.cluster.size",
    "executor.q.response.size",
    "operations.completed.count",
    "operations.running.count",
    "operations.pending.invocations.percentage",
    "operations.pending.invocations.count",
    "proxy.count",
    "clientEndpoint.count",
    "connection.active.count",
    "client.connection.count",
    "connection.count",
]


def under(prefix: str, fields: str) -> str:
    return " ".join(f"{prefix}.{field}" for field in fields.split())


def each(fields: str) -> str:
    return under("[]", fields)


FIELDS = {
    # 1
    "/overview": "projectVersion:s gitCommitAbbrev:s totalSlot:s unassignedSlot:s workers:s works:s"
    " runningJobs:s finishedJobs:s failedJobs:s cancelledJobs:s pendingJobs:s",
    # 2
    "/running-jobs": each(RUNNING),
    "/running-jobs?page=1&rows=1": "total:n data:l " + under("data.[]", RUNNING),
    # 3
    "/running-jobs/summary": each("jobId:s jobName:s jobStatus:s"),
    "/running-jobs/summary?full=true": each("jobId:s metrics:o"),
    # 4
    "/pending-jobs": "queueSummary.size:n queueSummary.scheduleStrategy:s"
    " queueSummary.oldestEnqueueTimestamp:n? queueSummary.newestEnqueueTimestamp:n?"
    " queueSummary.lackingTaskGroups:n clusterSnapshot.totalSlots:n clusterSnapshot.freeSlots:n"
    " clusterSnapshot.assignedSlots:n clusterSnapshot.workerCount:n clusterSnapshot.workers:l"
    " clusterSnapshot.workers.[].address:s clusterSnapshot.workers.[].tags:o"
    " clusterSnapshot.workers.[].totalSlots:n clusterSnapshot.workers.[].freeSlots:n"
    " clusterSnapshot.workers.[].dynamicSlot:b clusterSnapshot.workers.[].cpuUsage:f?"
    " clusterSnapshot.workers.[].memUsage:f? clusterSnapshot.workers.[].runningJobIds:l"
    " pendingJobs:l " + under("pendingJobs.[]", PENDING),
    # 5
    "/job-info/17": f"{RUNNING} explain:s diagnostics:o diagnostics.pipelines.[].restoreCount:n"
    " diagnostics.pipelines.[].maxRestoreCount:n",
    "/running-job/17": RUNNING,
    "/job-info/over": f"{JOB} errorMsg:s? startTime:s finishTime:s finishedTime:s",
    "/job-info/nobody": "jobId:s",
    # 6
    "/finished-jobs": each(f"{JOB} errorMsg:s? finishTime:s finishedTime:s"),
    "/finished-jobs/CANCELED": each("jobId:s jobStatus:s finishTime:s"),
    "/finished-jobs/?page=1&rows=5": "total:n data:l " + under("data.[]", "jobId:s finishTime:s"),
    # 15, 16, 17
    "/logs?format=json": each("node:s logLink:s logName:s"),
    "/logs/17?format=json": each("node:s logLink:s logName:s"),
    "/log?format=json": each("node:s logLink:s logName:s"),
    "/get-all-log-name": "[]:s",
    # 19, 20
    "/thread-dump": each("threadName:s stackTrace:l"),
    "/running-threads": "[]:s",
    # 21, 22
    "/jobs/checkpoints/17": "jobId:s updatedAt:n pipelines:l pipelines.[].pipelineId:n"
    " pipelines.[].counts.triggered:n pipelines.[].counts.completed:n"
    " pipelines.[].counts.failed:n pipelines.[].counts.inProgress:n"
    " pipelines.[].counts.restored:n pipelines.[].latestFailed:o? pipelines.[].latestSavepoint:o?"
    " pipelines.[].inProgress:l pipelines.[].history:l pipelines.[].history.[].pipelineId:n "
    + under("pipelines.[].latestCompleted", CHECKPOINT)
    + " "
    + under("pipelines.[].history.[].checkpoint", CHECKPOINT),
    "/jobs/checkpoints/history/17?pipelineId=1&limit=5&status=COMPLETED": each(
        "pipelineId:n " + under("checkpoint", CHECKPOINT)
    ),
    # 23
    "/option-rules?type=sink&plugin=LocalFile": "engineType:s pluginType:s pluginName:s"
    " optionRule.optionalOptions:l optionRule.requiredOptions:l optionRule.conditionRules:l"
    " optionRule.valueConstraints:l optionRule.optionalOptions.[].key:s"
    " optionRule.optionalOptions.[].type:s optionRule.optionalOptions.[].defaultValue:*"
    " optionRule.optionalOptions.[].description:s optionRule.optionalOptions.[].fallbackKeys:l"
    " optionRule.optionalOptions.[].optionValues:l? optionRule.requiredOptions.[].ruleType:s"
    " optionRule.requiredOptions.[].options:l optionRule.requiredOptions.[].expression:s?"
    " optionRule.requiredOptions.[].expressionTree:*",
    # 24
    "/metrics/realtime/jobs?windowMs=60000": each("jobId:s"),
    "/metrics/realtime/jobs/17/edges": each(
        "queueId:s targetVertexId:n emitBlockedNs:n? bpRatio:f? queueSize:n? queueCapacity:n?"
        " queueFillRatio:f?"
    ),
    "/metrics/realtime/jobs/17/vertices": each(
        "vertexId:n sourceReadNs:n? sourceIdleNs:n? sourceReadRatio:f? sourceIdleRatio:f?"
        " transformProcessNs:n? transformRecordsIn:n? transformRecordsOut:n? transformBusyRatio:f?"
        " sinkWriteNs:n? sinkRecordsIn:n? sinkBusyRatio:f? sinkWriteNsPerRecord:f?"
    ),
}

KINDS: dict[str, Any] = {"s": str, "n": int, "f": (int, float), "b": bool, "o": dict, "l": list}
MISSING = object()


def values(found: Any, steps: list[str]) -> list[Any]:
    """Return every value that a dotted field names; MISSING where it is not there."""
    if not steps:
        return [found]
    first, *rest = steps
    if first == "[]":
        assert isinstance(found, list) and found, "an empty list would prove nothing"
        return [v for item in found for v in values(item, rest)]
    if first == "{}":
        assert isinstance(found, dict) and found, "an empty map would prove nothing"
        return [v for item in found.values() for v in values(item, rest)]
    if not isinstance(found, dict) or first not in found:
        return [MISSING]
    return values(found[first], rest)


def wrong(found: Any, field: str) -> str:
    """Say what is wrong with a field; "" if nothing is."""
    path, _, kind = field.rpartition(":")
    for value in values(found, path.split(".")):
        if value is MISSING:
            return f"{path} is missing"
        if kind == "*" or (value is None and kind.endswith("?")):
            continue
        wanted = KINDS[kind.rstrip("?")]
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            return f"{path} is {value!r}, not {kind}"
    return ""


async def populate(master: Served) -> None:
    """Have a job that runs, one that waits and one that is over."""
    await master.submit("17")
    await master.runs("17")
    await master.checkpoint("17")
    await master.submit("over")
    await master.runs("over")
    assert (await master.http.post("/stop-job", json={"jobId": "over"})).json() == {"jobId": "over"}
    while (await master.get("/api/jobs/over"))["status"] != "CANCELED":
        await asyncio.sleep(0.01)
    await master.submit("large", STREAM.replace("parallelism = 1", "parallelism = 99"))
    while not (await master.get("/pending-jobs"))["pendingJobs"]:
        await asyncio.sleep(0.01)


def test_every_field_of_the_table_is_there_with_its_type(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await populate(master)
        said = []
        for path, fields in FIELDS.items():
            found = await master.get(path)
            said += [f"{path}: {w}" for field in fields.split() if (w := wrong(found, field))]
        assert not said, "\n".join(said)

    served(tmp_path, test, log_file=tmp_path / "master.log")


def test_monitoring_has_every_key_as_a_string(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        await master.beat()
        this, worker = await master.get("/system-monitoring-information")
        assert not [k for k in MONITORING if not isinstance(this.get(k), str)]
        assert (worker["host"], worker["isMaster"], worker["slots.total"]) == ("W1", "false", "8")
        assert await master.get("/system-monitoring-information?zone=b") == []
        assert (await master.get("/overview?zone=b"))["workers"] == "0"
        assert (await master.get("/overview?zone=a"))["workers"] == "1"

    served(tmp_path, test)


def test_pages_and_order(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        for job in ("1", "2", "3"):
            await master.submit(job)
        everything = [j["jobId"] for j in await master.get("/running-jobs")]
        assert everything == ["3", "2", "1"], "the newest first"
        page = await master.get("/running-jobs?page=2&rows=2")
        assert [j["jobId"] for j in page["data"]] == ["1"] and page["total"] == 3
        assert (await master.http.get("/running-jobs?page=0")).status_code == 400
        answer = await master.http.get("/running-jobs/summary")
        assert {"x-dispatch-delay-ms", "x-handler-cost-ms"} <= set(answer.headers)
        assert (await master.http.get("/finished-jobs/STRANGE")).status_code == 400

    served(tmp_path, test)


def test_errors_have_seatunnels_body(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        answer = await master.http.post("/submit-job?isStartWithSavePoint=true", content=b"{}")
        assert answer.status_code == 400
        assert answer.json()["status"] == "fail" and "jobId" in answer.json()["message"]
        assert answer.headers["content-type"] == "application/json;charset=UTF-8"
        gone = await master.http.post("/stop-job", json={"jobId": 733584788375666689})
        assert gone.status_code == 404 and gone.json()["status"] == "fail"

    served(tmp_path, test)


@pytest.mark.parametrize("context", ["", "/seatunnel"])
def test_the_context_path_is_stripped(tmp_path: Path, context: str) -> None:
    async def test(master: Served) -> None:
        assert (await master.get(f"{context}/overview"))["runningJobs"] == "0"
        assert (await master.get("/overview"))["runningJobs"] == "0"

    served(tmp_path, test, context_path=context)
