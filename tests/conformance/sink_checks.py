"""The checks of sinks as test cases: the telling ones always, the long ones with `make sinks`."""

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode
from holdfast.testing import sink_openings
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
    "save_modes_change_nothing_before_their_commit",
    "save_modes_apply_without_rows",
    "save_modes_apply_once_for_a_life_whoever_commits",
    "a_known_table_keeps_its_rows",
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

OPENINGS = [
    pytest.param(check, id=check.__name__, marks=pytest.mark.sinks)
    for check in sink_openings.CHECKS
]
"""The checks of save modes, for another mode of the same sink."""


def chosen(modes: Mapping[str, str]) -> dict[str, Any]:
    """Return save modes as options of a sink for lake tables have them."""
    kinds = {"data_save_mode": DataSaveMode, "schema_save_mode": SchemaSaveMode}
    return {name: kinds[name](mode) for name, mode in modes.items()}
