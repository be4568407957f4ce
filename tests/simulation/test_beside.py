"""Lost tables are filled from files, which are there at once, while writes before them may be lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from light_scheduler.tables import loading, local_copy
from simulation import node
from simulation.disk import Disk
from simulation.drawing import draw
from simulation.faults import Fault
from simulation.history import History
from simulation.playing import play


def draw_wipes(seed: int) -> History:
    """Draw a history in which disks are lost, and processes while they fill them again."""
    random, history = Random(seed), draw(seed)
    faults = list(history.faults)
    for _ in range(8):
        wiped = random.randint(60, 400)
        faults.append((wiped, Fault("wipe", random.random())))
        faults.append((wiped + random.randint(10, 40), Fault(random.choice(("kill", "power", "lose")), 0.5)))
    return replace(history, faults=tuple(sorted(dict(faults).items())))


@pytest.fixture
def taken_in() -> Iterator[list[int]]:
    """Have processes fill tables, however small, with files of few records; yield how many rows files had."""
    rows_of: list[int] = []
    take_in = Disk.take_in

    def noted(disk: Disk, path: Path, rows: dict[bytes, bytes]) -> None:
        rows_of.append(len(rows))
        take_in(disk, path, rows)

    with (
        patch.object(node, "FILLS_BESIDE", True),
        patch.object(local_copy, "MANY_OFFSETS", 1),
        patch.multiple(loading, FILES_RECORDS=3, STEP_RECORDS=2),
        patch.object(Disk, "take_in", noted),
    ):
        yield rows_of


@pytest.mark.timeout(1_800)
def test_whatever_happens_while_lost_tables_are_filled_no_harm_is_done(
    taken_in: list[int], pytestconfig: pytest.Config
) -> None:
    seeds = range(max(20, pytestconfig.getoption("--histories") // 5))
    violations = {seed: violation for seed in seeds if (violation := play(draw_wipes(seed)).violation)}
    assert violations == {}
    assert len(taken_in) > len(seeds)
