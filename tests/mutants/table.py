"""The planted bugs: where, what stands there, what is put there instead, and who must notice.

A piece of text must stand in its file just once, so a bug whose place has gone is found out.
"""

from dataclasses import dataclass

WORKER = "tests/unit/worker/test_worker.py::"
LISTS = "tests/api/test_lists.py::"


@dataclass(frozen=True)
class Bug:
    """A planted bug, and the tests of which at least one must fail.

    `says` is what must be among the words of that failure, such as the oracle's.
    """

    name: str
    file: str
    stands: str
    planted: str
    tests: tuple[str, ...]
    says: str = ""


BUGS = (
    # The worker
    Bug(
        "an order said again begins the task again",
        "holdfast/worker/agent.py",
        "if (known and known.number >= order.attempt) or (",
        "if (known and known.number > order.attempt) or (",
        (WORKER + "test_an_order_said_again_does_not_begin_a_task_a_second_time",),
    ),
    Bug(
        "a former leader is obeyed",
        "holdfast/worker/agent.py",
        "if message.term < self.term:\n            return",
        "if message.term < self.term:\n            pass",
        (WORKER + "test_an_end_is_reported_until_it_is_confirmed_and_again_to_a_new_leader",),
    ),
    Bug(
        "a confirmation outlives its term",
        "holdfast/worker/agent.py",
        "attempt.confirmed.clear()",
        "attempt.confirmed.copy()",
        (WORKER + "test_an_end_is_reported_until_it_is_confirmed_and_again_to_a_new_leader",),
    ),
    Bug(
        "a stopped attempt may begin once more",
        "holdfast/worker/agent.py",
        "if self._stopped.get(order.key, 0) >= order.attempt:",
        "if self._stopped.get(order.key, 0) > order.attempt:",
        (WORKER + "test_a_failure_is_held_until_it_was_heard",),
    ),
    Bug(
        "a worker applies save modes itself",
        "holdfast/worker/task_runner.py",
        "made = sink.prepare(new, opening)\n",
        "made = sink.prepare(new, opening)\n"
        "            from holdfast.connect.sink import CommitId\n"
        "            sink.commit(CommitId('now', 1), made)\n"
        "            made = []\n",
        (
            "tests/unit/worker/test_embedded.py::"
            "test_a_job_that_fails_before_its_first_commit_has_destroyed_nothing",
        ),
    ),
    Bug(
        "prepare without the fence, on real processes",
        "holdfast/worker/task_runner.py",
        "made = sink.prepare(new, opening)\n",
        "import time\n"
        "            from holdfast.connect.sink import CommitId\n"
        "            own = f'{opening.life}.{time.monotonic_ns()}'\n"
        "            made = sink.prepare(new, Opening(own, opening.known, opening.earlier))\n"
        "            sink.commit(CommitId(own, 1), made)\n"
        "            made = []\n",
        ("tests/chaos/test_save_modes.py::test_what_is_shown_stays_whoever_wakes",),
        "I79",
    ),
    Bug(
        "a restore forgets which tables are known",
        "holdfast/master/restored_checkpoints.py",
        "opened=opened_in(saved, move.moved),",
        "opened=(),",
        ("tests/unit/master/test_restored_checkpoints.py",),
    ),
    Bug(
        "a mistake of the job is tried again",
        "holdfast/worker/attempt.py",
        "fatal = isinstance(self.error, UserError)",
        "fatal = False",
        (WORKER + "test_a_mistake_of_the_job_is_fatal",),
    ),
    Bug(
        "a barrier is answered anew each time",
        "holdfast/worker/attempt.py",
        "if answered and answered.number >= barrier.number:",
        "if answered and answered.number > barrier.number:",
        (WORKER + "test_a_barrier_is_answered_once_and_the_same_answer_is_given_again",),
    ),
    Bug(
        "what a complete checkpoint holds is said again",
        "holdfast/worker/attempt.py",
        "if s.created > complete]",
        "if s.created > 0]",
        (
            "tests/unit/worker/test_unheld.py::"
            "test_an_answer_while_sixty_commits_wait_is_as_long_as_while_one_does",
        ),
    ),
    Bug(
        "a task stages without end while no checkpoint holds it",
        "holdfast/worker/attempt.py",
        "self._bytes >= NAMES_BYTES_PAUSE",
        "self._bytes < 0",
        (
            "tests/unit/worker/test_unheld.py::"
            "test_a_task_reads_no_further_while_no_checkpoint_holds_much_of_what_it_staged",
        ),
    ),
    # The leader
    Bug(
        "a leader without time takes those who speak for dead",
        "holdfast/master/worker_registry.py",
        "            seen.spoke_s = now_s",
        "            seen.spoke_s = seen.at_s",
        ("tests/sim/test_busy.py::test_thousands_of_answers_cost_no_worker_and_no_term",),
    ),
    Bug(
        "a leader takes a write of its own for another's",
        "holdfast/master/pipeline_keeper.py",
        "not await self.confirm():",
        "await self.desk.confirm(self.key, self.revision):",
        ("tests/sim/test_busy.py::test_thousands_of_answers_cost_no_worker_and_no_term",),
    ),
    Bug(
        "an end is confirmed though it was taken back while it was proven",
        "holdfast/master/pipeline_keeper.py",
        "return self.state.completion.has(event)  # it may",
        "return True  # it may",
        (
            "tests/api/test_leaders.py::"
            "test_an_end_that_is_taken_back_while_it_is_proven_is_not_confirmed",
        ),
    ),
    # Cleaning up
    Bug(
        "cleanup does not wait for tasks that are held",
        "holdfast/master/job_keeper.py",
        "if self.held(life.job, life.incarnation):",
        "if self.held(life.job, life.incarnation) and not life.job:",
        (
            "tests/unit/master/test_cleaning.py::"
            "test_nothing_of_a_job_is_removed_while_a_worker_holds_a_task_of_it",
        ),
    ),
    # The API
    Bug(
        "the leader lists tombstones among the jobs that run",
        "holdfast/api/seatunnel/jobs.py",
        "return await self._running_from_store(ask.query)\n"
        "        kept = [k for k in leader.jobs.values() if not k.terminal]",
        "return await self._running_from_store(ask.query)\n"
        "        kept = list(leader.jobs.values())",
        (LISTS + "test_a_job_that_is_over_is_not_among_those_that_run",),
    ),
    Bug(
        "the store lists tombstones among the jobs that run",
        "holdfast/api/seatunnel/jobs.py",
        "jobs = [j for j in await self.api.stored_jobs() if j.status not in TERMINAL]",
        "jobs = await self.api.stored_jobs()",
        (LISTS + "test_a_job_that_is_over_is_not_among_those_that_run",),
    ),
    Bug(
        "the leader tells no time of the last checkpoint",
        "holdfast/api/seatunnel/jobs.py",
        "found.lastCheckpointTime = date_text(last_s) if last_s else None",
        "found.lastCheckpointTime = None",
        (LISTS + "test_the_time_of_the_last_checkpoint_is_told",),
    ),
    Bug(
        "the store tells no time of the last checkpoint",
        "holdfast/api/seatunnel/jobs.py",
        "        lastCheckpointTime=date_text(last_s) if last_s else None,",
        "        lastCheckpointTime=None,",
        (LISTS + "test_the_time_of_the_last_checkpoint_is_told",),
    ),
    Bug(
        "whoever may read may cancel",
        "holdfast/api/routes/jobs.py",
        'Route("POST", one + "/cancel", OPERATE, self.cancel',
        'Route("POST", one + "/cancel", READ, self.cancel',
        ("tests/api/test_access.py::test_whoever_may_only_read_orders_nothing",),
    ),
    Bug(
        "an alert asks for a health that there is not",
        "deploy/alerts.yaml",
        "expr: max by (job, name, pipeline) (holdfast_job_health) == 2",
        "expr: max by (job, name, pipeline) (holdfast_job_health) == 3",
        ("tests/api/test_alerts.py",),
    ),
    # What stands still, and says that it is well
    Bug(
        "a Spark that does not answer is taken for well",
        "holdfast/worker/probe.py",
        'return line.recv(64).startswith(b"!y")\n        return False',
        'return line.recv(64).startswith(b"!y")\n        return True',
        ("tests/unit/worker/test_probe.py",),
    ),
    Bug(
        "a Spark that is stopped as it starts is waited for",
        "holdfast/worker/probe.py",
        "return not stands_still(self._jvm.process.pid)",
        "return True",
        ("tests/unit/worker/test_probe.py",),
    ),
    Bug(
        "a start of Spark has no bound",
        "holdfast/worker/probe.py",
        "why = why or self._started_too_long(starting_s)",
        "why = why or ''",
        ("tests/unit/worker/test_probe.py",),
    ),
    Bug(
        "a job on a Spark that stands still is well",
        "holdfast/master/health.py",
        "            if sick is None:\n                continue",
        "            if sick is None or not pipeline.policy.periodic:\n                continue",
        ("tests/unit/master/test_health.py", "tests/api/test_trouble.py"),
    ),
    Bug(
        "why a worker started anew is forgotten",
        "holdfast/core/task.py",
        'return f"its worker was lost: {self.why}" if self.why else "its worker was lost"',
        'return "its worker was lost"',
        ("tests/api/test_trouble.py",),
    ),
    Bug(
        "a job that is over is well",
        "holdfast/master/health.py",
        "told = reports and status not in TERMINAL",
        "told = reports",
        ("tests/unit/master/test_health_words.py",),
    ),
    Bug(
        "a stream that has waited for a worker is STALLED as it begins",
        "holdfast/core/pipeline.py",
        "fresh = old.checkpoints.next == 1 and task.first_run(old.tasks, tasks)",
        "fresh = False",
        ("tests/unit/master/test_health_words.py",),
    ),
    Bug(
        "terms leap with each write",
        "holdfast/master/leader_store.py",
        "return self.numbers.get(self.term, self.term)",
        "return self.term",
        ("tests/api/test_leaders.py",),
    ),
    Bug(
        "the time to wait for a job never ends",
        "holdfast/cli/follow.py",
        "if ended or not self._timeout_s or",
        "if ended or self._timeout_s or",
        ("tests/unit/cli/test_follow.py",),
    ),
    Bug(
        "a quiet command does not say what its job waits for",
        "holdfast/cli/follow.py",
        "(self.quiet and not (why and due))",
        "self.quiet",
        ("tests/unit/cli/test_follow.py",),
    ),
    # Restores
    Bug(
        "positions are matched by place",
        "holdfast/core/stage_match.py",
        "self.same = [_place(one) for one in old] == [_place(one) for one in new]",
        "self.same = True",
        ("tests/unit/core/test_stage_match.py",),
    ),
    Bug(
        "a restore does not look first",
        "holdfast/api/service.py",
        "if taken or not self.looks:",
        "if taken or self.looks:",
        (
            "tests/api/test_saved.py::"
            "test_what_a_worker_cannot_open_is_refused_while_the_job_is_as_it_was",
        ),
    ),
    Bug(
        "save modes of known tables are looked at",
        "holdfast/api/restoring.py",
        "if place not in known or e.key not in SAVE_MODES]",
        "if place not in known or e.key]",
        (
            "tests/api/test_saved.py::"
            "test_what_a_worker_cannot_open_is_refused_while_the_job_is_as_it_was",
        ),
    ),
    Bug(
        "a source that is gone is dropped without a word",
        "holdfast/core/stage_match.py",
        "if not allow_dropped and not work.unsure(one):",
        "if not allow_dropped and work.unsure(one):",
        ("tests/unit/core/test_stage_match.py",),
    ),
    Bug(
        "what positions depend on is not looked at",
        "holdfast/core/stage_match.py",
        "if was.get(key) != now.get(key)",
        "if was.get(key) is None and now.get(key)",
        ("tests/unit/core/test_stage_match.py", "tests/unit/api/test_restoring.py"),
    ),
    Bug(
        "a restart goes on from what was the latest when it was planned",
        "holdfast/api/service.py",
        "if latest and latest.id != saved.id:",
        "if latest and not latest.id:",
        (
            "tests/api/test_saved.py::"
            "test_a_life_that_ends_while_a_restart_is_planned_is_where_it_goes_on",
        ),
    ),
    Bug(
        "lives are counted anew when the history has forgotten a job",
        "holdfast/api/service.py",
        "max([leader.vault.last_life(job_id), *(job.life for job in lives)])",
        "max([0, *(job.life for job in lives)])",
        (
            "tests/api/test_saved.py::"
            "test_savepoints_are_there_when_the_history_has_forgotten_their_jobs",
        ),
    ),
    Bug(
        "a leader forgets how long the one before had led",
        "holdfast/master/saved_states.py",
        "self._led = (max(self._led[0], told_s), self._led[1])",
        "self._led = (max(self._led[0], 0.0), self._led[1])",
        (
            "tests/api/test_saved.py::"
            "test_what_is_left_later_is_later_though_a_leader_died_before_it_wrote_how_long_it_led",
        ),
    ),
    Bug(
        "a folder is known by how it is written",
        "holdfast/connectors/files/source.py",
        '"path": [local_path(p) for p in paths]',
        '"path": [*paths]',
        ("tests/unit/api/test_restoring.py::test_a_folder_may_be_written_otherwise",),
    ),
    # Committers
    Bug(
        "Iceberg makes a commit of a number twice",
        "holdfast/connectors/iceberg/committer.py",
        "if table.last(identifier.user) >= identifier.number:",
        "if table.last(identifier.user) > identifier.number:",
        ("tests/unit/connectors/iceberg/test_iceberg_commit.py",),
    ),
    Bug(
        "Delta makes a late commit",
        "holdfast/connectors/delta/committer.py",
        "if log.last(identifier.user) >= identifier.number:",
        "if log.last(identifier.user) == identifier.number:",
        (
            "tests/unit/connectors/delta/test_delta_tail.py::"
            "test_a_repeated_or_late_commit_changes_nothing",
        ),
    ),
    Bug(
        "Paimon makes a commit again",
        "holdfast/connectors/paimon/committer.py",
        "if table.has(identifier, files):\n                return",
        "if table.has(identifier, files):\n                pass",
        ("tests/unit/connectors/paimon/test_paimon_commit.py",),
    ),
    Bug(
        "files of a late commit appear",
        "holdfast/connectors/files/committer.py",
        "later = any(number > mine for number, _ in found)",
        "later = False",
        ("tests/unit/connectors/local_file/test_commit.py",),
    ),
    Bug(
        "a database makes a commit twice",
        "holdfast/connectors/jdbc/committer.py",
        "if number >= identifier.number:",
        "if number > identifier.number:",
        ("tests/conformance/test_sink_jdbc.py",),
    ),
    # Values
    Bug(
        "a database rounds a number",
        "holdfast/connectors/jdbc/exact.py",
        "return -int(number.normalize().as_tuple().exponent) > places",
        "return False",
        ("tests/unit/connectors/jdbc/test_exact.py",),
    ),
    Bug(
        "a database drops an offset",
        "holdfast/connectors/jdbc/exact.py",
        "lambda t: bool(_OFFSET.search(t))",
        "lambda t: False",
        ("tests/unit/connectors/jdbc/test_exact.py",),
    ),
    Bug(
        "a file that ends too soon is a shorter file",
        "holdfast/connectors/files/formats/xml.py",
        "        parser.close()  # says so if the file ends too soon\n",
        "",
        (
            "tests/unit/connectors/local_file/test_values_read.py::"
            "test_xml_that_is_no_plain_row_is_refused_and_never_cut",
        ),
    ),
    Bug(
        "a text that is no number is null",
        "holdfast/connectors/files/text_conversion.py",
        "if not _DIGITS.fullmatch(text) or len(text) > 100:\n        raise ValueError",
        "if not _DIGITS.fullmatch(text) or len(text) > 100:\n        return None",
        ("tests/unit/connectors/local_file/test_values_page.py",),
    ),
)
