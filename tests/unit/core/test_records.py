"""Records are read strictly: another version or a damaged record is refused, never half read."""

import json

import msgspec
import pytest

from holdfast.core.gather import Counts
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.records import VERSION, RecordUnreadable, decode, encode
from tests.unit.core.worlds import fresh

JOB = JobRecord("j", "i", "token", "j", "spec", 1, saved=((1, "blob"),), tags=(("zone", "b"),))


def test_a_record_survives_the_store() -> None:
    assert decode(JobRecord, encode(JOB)) == JOB
    assert decode(PipelineRecord, encode(fresh())) == fresh()


def test_records_and_counts_from_before_rows_were_rejected_are_read() -> None:
    envelope = json.loads(encode(JOB))
    del envelope["record"]["totals"]["rejected"]
    assert decode(JobRecord, json.dumps(envelope).encode()) == JOB
    old = b'{"read": 5, "written": [], "latest": []}'
    assert msgspec.json.decode(old, type=Counts) == Counts(5)


@pytest.mark.parametrize("version", [VERSION + 1, 0, "1", None])
def test_another_version_is_refused(version: object) -> None:
    value = json.dumps({**json.loads(encode(JOB)), "version": version}).encode()
    with pytest.raises(RecordUnreadable) as refused:
        decode(JobRecord, value)
    assert refused.value.code == "record.version"


@pytest.mark.parametrize("end", [0, 1, 10, -1])
def test_a_record_cut_short_is_refused(end: int) -> None:
    with pytest.raises(RecordUnreadable) as refused:
        decode(JobRecord, encode(JOB)[:end])
    assert refused.value.code == "record.damaged"


@pytest.mark.parametrize(
    "change", [{"status": "ASLEEP"}, {"pipelines": "many"}, {"saved": 7}, {"id": None}]
)
def test_a_record_with_a_wrong_value_is_refused(change: dict[str, object]) -> None:
    envelope = json.loads(encode(JOB))
    envelope["record"] |= change
    with pytest.raises(RecordUnreadable):
        decode(JobRecord, json.dumps(envelope).encode())


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(RecordUnreadable):
        decode(PipelineRecord, encode(JOB))
