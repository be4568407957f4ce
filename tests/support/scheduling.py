"""How the processes of a run (`--numprocesses 3`) share the tests.

Each file is a unit that one process runs; so is everything that uses the Spark session, of which a run has one, and
each test of the simulation. Long units come first, so that the processes end at about the same time.

With `--soak`, files that measure times are alone: they run at the end, in one process, while nothing else runs.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SPARK = "tests/pipeline/"
OWN_SPARK = ("_executors.py", "_kills.py", "_secrets.py", "_spark_submit.py")
"""How files are called whose tests start Spark themselves, in processes of their own."""
SIMULATION = "tests/simulation/"
CAMPAIGN = f"{SIMULATION}test_campaign.py"
LONGEST_FIRST = (SPARK, "tests/chaos/", "tests/integration/")
MEASURE_TIMES = (
    "tests/chaos/test_expiring_logins.py",
    "tests/chaos/test_failure_domains.py",
    "tests/chaos/test_rebalances.py",
    "tests/chaos/test_rolling_restart.py",
    "tests/chaos/test_target_away.py",
    "tests/integration/test_rates.py",
    "tests/integration/test_standby.py",
)
ALONE = "alone"


def share_of(ports: range, process: str, processes: int) -> range:
    """Return the ports that one of so many processes, such as `gw1`, may choose from.

    A worker listens some seconds after its port was chosen: until then, no other process may choose it too.
    """
    size = len(ports) // processes
    number = int(process.removeprefix("gw")) % processes  # one that replaces a process that crashed has a number beyond
    return ports[number * size : (number + 1) * size]


def turn_of(nodeid: str, *, with_soaks: bool) -> int:
    """Return a number by which tests are sorted: when they are begun."""
    if with_soaks and nodeid.startswith(MEASURE_TIMES):
        return len(LONGEST_FIRST) + 1
    if nodeid.startswith(CAMPAIGN):
        return -1
    folders = (turn for turn, folder in enumerate(LONGEST_FIRST) if nodeid.startswith(folder))
    return next(folders, len(LONGEST_FIRST))


def unit_of(nodeid: str, *, with_soaks: bool) -> str:
    """Return what a test is kept together by."""
    if with_soaks and nodeid.startswith(MEASURE_TIMES):
        return ALONE
    if nodeid.startswith(SPARK) and not nodeid.partition("::")[0].endswith(OWN_SPARK):
        return SPARK
    return nodeid if nodeid.startswith(SIMULATION) else nodeid.partition("::")[0]


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed
    """Gives units to processes. The first to run out of ordinary ones waits for the others, then runs what is alone.

    A process begins a test only when it knows what comes after it, or that nothing does.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._with_soaks = bool(config.getoption("--soak"))
        self._host: WorkerController | None = None

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        for other in self.nodes:  # one may have waited for this test
            self._reschedule(other)

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process that has ended, put back what it left, and return the test in which it crashed, if any."""
        if node is self._host:
            self._host = None
        left = {unit: tests for unit, tests in self.assigned_work.pop(node).items() if not all(tests.values())}
        crashed = next((test for tests in left.values() for test, is_done in tests.items() if not is_done), None)
        if crashed is not None:
            left[self._split_scope(crashed)][crashed] = True
            self.workqueue.update(left)
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid, with_soaks=self._with_soaks)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:  # it has just been started in place of one that crashed
            return
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            if self._next_for(node) is not None:
                self._assign_work_unit(node)
            elif ALONE in self.workqueue and node is self._host:
                return
            else:
                node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        unit = self._next_for(node)
        if unit is not None:
            self.workqueue.move_to_end(unit, last=False)
            super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str | None:
        waiting: list[str] = list(self.workqueue)
        ordinary = next((unit for unit in waiting if unit != ALONE), None)
        if ordinary is not None or not waiting:
            return ordinary
        self._host = self._host or node
        return ALONE if node is self._host and not self._somebody_is_in_the_way() else None

    def _somebody_is_in_the_way(self) -> bool:
        return any(
            unit != ALONE and not all(tests.values())
            for node, units in self.assigned_work.items()
            if node is not self._host
            for unit, tests in units.items()
        )
