"""Submit a job file to a cluster from Python: `holdfast.submit("job.conf").check()`."""

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.api.views import ENDED, JobDetail
from holdfast.cli.job_file import read_tree
from holdfast.client import POLL_S, Client
from holdfast.config import load_config
from holdfast.connect.checks import CheckReport
from holdfast.model.secret import Secret
from holdfast.plan.record import JobSource, encode_spec
from holdfast.process.run_result import RunResult, result_on_cluster
from holdfast.security.identity import client_tls
from holdfast.security.token_files import client_token


def submit(
    file: str | os.PathLike[str],
    *,
    masters: str | Sequence[str] | None = None,
    token: str | Secret | None = None,
    variables: Mapping[str, str] | None = None,
    name: str | None = None,
    job_id: str | None = None,
    wait: bool = True,
    timeout_s: float = 0.0,
    close_job: bool = False,
    lenient: bool = False,
    allow_unset: bool = False,
    allow_python: bool = False,
) -> RunResult:
    """Submit a job file to a cluster, follow it to its end, and return what became of it.

    Masters and token are found as the command line finds them, where they are not given.  With
    `wait=False`, or once `timeout_s` is over, the result is the present state, and the job
    continues; with `close_job` it is cancelled where this call is left early, by the time or by an
    exception.  Raises `JobFileError` if the file is wrong, and `Unavailable` where no master
    answers.
    """
    report = CheckReport(lenient=lenient, allow_unset=allow_unset)
    tree = read_tree(Path(file), dict(variables or {}), report)
    spec = encode_spec(JobSource(str(file), tree, name, lenient, allow_python))
    client = _client(masters, token)
    number = job_id or str(time.time_ns())[:18]
    try:
        client.submit(spec, secrets.token_hex(16), number)
        try:
            detail = _awaited(client, number, timeout_s) if wait else client.job(number)
        except BaseException:
            if close_job:
                client.cancel(number)
            raise
        if close_job and wait and detail.status not in ENDED:
            client.cancel(number)
            detail = client.wait(number, lambda _: None)
        return result_on_cluster(detail, client.graph(number).tables)
    finally:
        client.close()


def _awaited(client: Client, job_id: str, timeout_s: float) -> JobDetail:
    """Return how a job ended, or its state when the time is over (0: no limit)."""
    until_s = time.monotonic() + timeout_s
    while True:
        now = client.job(job_id)
        if now.status in ENDED or (timeout_s and time.monotonic() >= until_s):
            return now
        time.sleep(POLL_S)


def _client(masters: str | Sequence[str] | None, token: str | Secret | None) -> Client:
    urls = masters if masters is None or isinstance(masters, str) else ",".join(masters)
    config = load_config({"masters": urls} if urls else {}, os.environ).config
    found = token if token is not None else client_token(config)
    return Client(config.masters, found, tls=client_tls(config))
