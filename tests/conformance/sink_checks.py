"""The checks of sinks as test cases: the telling ones always, the long ones with `make sinks`."""

import pytest

from holdfast.testing.check_sink import SINK_CHECKS

ALWAYS = {
    "rows_show_at_their_commit_and_not_before",
    "a_process_may_die_between_any_two_calls",
    "a_repeated_commit_changes_nothing",
    "numbers_may_have_gaps_and_users_do_not_mask_each_other",
    "an_epoch_may_be_empty",
    "what_was_staged_and_is_gone_fails_loudly",
    "what_a_checkpoint_needs_is_left_alone",
    "leftovers_go",
}

ALL = [
    pytest.param(
        check, id=check.__name__, marks=[pytest.mark.sinks] * (check.__name__ not in ALWAYS)
    )
    for check in SINK_CHECKS
]
"""Every check; those that take long are marked."""

LONG = [pytest.param(check, id=check.__name__, marks=pytest.mark.sinks) for check in SINK_CHECKS]
"""Every check, marked as long: for a second table of the same sink, or a server to be fetched."""
