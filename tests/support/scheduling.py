"""How the processes of a run (`--numprocesses 3`) share the tests.

Each file is a unit that one process runs; so is each part of the tests that use a Spark session, of which a run has one
(with `--soak`, two), and each test of the simulation. Long units come first, so that the processes end at about the
same time.

With `--soak`, files that measure times run after those that need Kafka, Spark or a browser, in one process. Beside it,
one process runs what needs nothing but a core: unit and contract tests, the simulation, fuzzing. What measures times
and takes both cores is alone: it runs at the end, while nothing else runs.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SPARK = "tests/pipeline/"
SPARK_SESSIONS = 2
"""With `--soak`: one alone keeps a core busy, and would be the last to end."""
SECOND_SPARK = tuple(f"{SPARK}{name}" for name in ("load/", "test_kafka_", "test_least_rights.py"))
"""The tests that share the second session."""
OWN_SPARK = ("_executors.py", "_kills.py", "_secrets.py", "_spark_submit.py")
"""How files are called whose tests start Spark themselves, in processes of their own."""
SIMULATION = "tests/simulation/"
CAMPAIGN = f"{SIMULATION}test_campaign.py"
LONGEST_FIRST = (SPARK, "tests/chaos/", "tests/integration/", "tests/browser/")
PURE = (CAMPAIGN, SIMULATION, "tests/unit/", "tests/contract/", "tests/fuzz/")
"""Tests that need a core and nothing else."""
MEASURE_TIMES = (
    "tests/chaos/test_target_away.py",
    "tests/chaos/test_targets_in_trouble.py",
    "tests/integration/test_poison.py",
    "tests/integration/test_standby.py",
)
TAKE_BOTH_CORES = (
    "tests/chaos/test_expiring_logins.py",
    "tests/chaos/test_failure_domains.py",
    "tests/chaos/test_rebalances.py",
    "tests/chaos/test_rolling_restart.py",
    "tests/integration/test_burst_control.py",
    "tests/integration/test_rates.py",
)
"""These need both for their bounds, which are those of a machine that does nothing else."""
TIMED, ALONE = "timed", "alone"
"""The units of what measures times."""
_TURNS = (*LONGEST_FIRST, *PURE)


def share_of(ports: range, process: str, processes: int) -> range:
    """Return the ports that one of so many processes, such as `gw1`, may choose from.

    A worker listens some seconds after its port was chosen: until then, no other process may choose it too.
    """
    size = len(ports) // processes
    number = int(process.removeprefix("gw")) % processes  # one that replaces a process that crashed has a number beyond
    return ports[number * size : (number + 1) * size]


def turn_of(nodeid: str, *, with_soaks: bool) -> int:
    """Return a number by which tests are sorted: when they are begun."""
    if with_soaks and nodeid.startswith((*MEASURE_TIMES, *TAKE_BOTH_CORES)):
        return len(_TURNS)
    turns = (turn for turn, begin in enumerate(_TURNS) if nodeid.startswith(begin))
    return next(turns, len(_TURNS))


def unit_of(nodeid: str, *, with_soaks: bool) -> str:
    """Return what a test is kept together by."""
    if with_soaks and nodeid.startswith(MEASURE_TIMES):
        return TIMED
    if with_soaks and nodeid.startswith(TAKE_BOTH_CORES):
        return ALONE
    if nodeid.startswith(SPARK) and not nodeid.partition("::")[0].endswith(OWN_SPARK):
        return SECOND_SPARK[0] if with_soaks and nodeid.startswith(SECOND_SPARK) else SPARK
    return nodeid if nodeid.startswith(SIMULATION) else nodeid.partition("::")[0]


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed
    """Gives units to processes. The first to run out of ordinary ones is the host: when the others have none either, it
    runs what measures times, with one guest beside it that runs pure ones, and in the end what is alone.

    A process begins a test only when it knows what comes after it, or that nothing does.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._with_soaks = bool(config.getoption("--soak"))
        self._host: WorkerController | None = None
        self._guest: WorkerController | None = None

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        for other in self.nodes:  # one may have waited for this test
            self._reschedule(other)

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process that has ended, put back what it left, and return the test in which it crashed, if any."""
        self._host = None if node is self._host else self._host
        self._guest = None if node is self._guest else self._guest
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
            elif node is self._host and (TIMED in self.workqueue or ALONE in self.workqueue):
                return
            else:
                node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        unit = self._next_for(node)
        if unit is not None:
            self.workqueue.move_to_end(unit, last=False)
            super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str | None:
        ordinary = next(filter(_is_ordinary, self.workqueue), None)
        if ordinary is not None or not self.workqueue:
            return ordinary
        self._host = self._host or node
        pure = next((unit for unit in self.workqueue if unit.startswith(PURE)), None)
        if node is not self._host:
            return pure if self._may_run_pure(node) else None
        others = self._units_of_others()
        if TIMED in self.workqueue and not any(map(_is_ordinary, others)):
            return TIMED
        return pure or (ALONE if ALONE in self.workqueue and not others else None)

    def _may_run_pure(self, node: WorkerController) -> bool:
        """Return whether a process may run pure units: only one besides the host until times are measured."""
        if TIMED not in (*self.workqueue, *self._pending_units(self._host)):
            return True
        self._guest = self._guest or node
        return node is self._guest

    def _units_of_others(self) -> list[str]:
        return [unit for node in self.nodes if node is not self._host for unit in self._pending_units(node)]

    def _pending_units(self, node: WorkerController | None) -> list[str]:
        return [unit for unit, tests in self.assigned_work[node].items() if not all(tests.values())]


def _is_ordinary(unit: str) -> bool:
    return not unit.startswith((*PURE, TIMED, ALONE))
