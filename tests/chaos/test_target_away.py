"""A target whose only broker is killed: its own firings wait for it, and nobody else notices.

It measures how late the others are. More ways to be away are in `test_failure_domains`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.target_outage import Case, outlast

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak, pytest.mark.timeout(420)]


@pytest.mark.every_case
async def test_a_target_whose_broker_is_killed_holds_up_nobody_else_and_gets_everything_on_its_return(
    tmp_path: Path,
) -> None:
    await outlast(tmp_path, Case((3,), "kill", 20, workers=2))
