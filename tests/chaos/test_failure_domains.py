"""One target that takes nothing, in several ways: its own firings wait for it, and nobody else notices."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.target_outage import Case, outlast

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak, pytest.mark.timeout(420)]

WITH_TWO_IN_SYNC = {"min.insync.replicas": "2"}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            Case((3,), "kill", 45, workers=2),
            id="its only copy is away for long, of two workers",
            marks=pytest.mark.every_case,
        ),
        pytest.param(Case((3,), "freeze", 20), id="its only copy is on a broker that hangs"),
        pytest.param(
            Case((1, 3), "kill", 20, configs=WITH_TWO_IN_SYNC, marker_wait_ms=4_000),
            id="it has fewer copies than it needs",
            marks=pytest.mark.every_case,
        ),
    ],
)
async def test_a_target_that_takes_nothing_holds_up_nobody_else_and_gets_everything_on_its_return(
    tmp_path: Path, case: Case
) -> None:
    await outlast(tmp_path, case)
