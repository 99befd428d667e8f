"""All scenarios, by window."""

from tests.sim.scenarios import (
    a_leading,
    b_submit,
    c_drains,
    c_tasks,
    d_checkpoints,
    e_ends,
    f_commits,
    g_savepoints,
    h_cleanup,
    p_prepare,
    s_store,
    u_truth,
)
from tests.sim.scenarios.scene import SCENARIOS, Scenario

GROUPS = (
    a_leading, b_submit, c_tasks, c_drains, d_checkpoints, e_ends, f_commits, g_savepoints,
    h_cleanup, p_prepare, s_store, u_truth,
)  # fmt: skip


def scenarios_of(window: str) -> list[Scenario]:
    """Return the scenarios of a window; none if it is not simulated yet."""
    return SCENARIOS.get(window, [])


def simulated() -> list[str]:
    """Return the windows that are simulated, sorted."""
    return sorted(SCENARIOS)
