"""Faults at random on real workers and a real Kafka: no promise is broken.

Three minutes of it: `make test ARGS="tests/chaos/test_random_faults.py --soak --chaos-seconds 180"`; any length, with
more workers and messages: `light-scheduler bench chaos --seconds 500 --messages 500000 --seed 7`.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak, pytest.mark.timeout(1_800)]

MESSAGES_PER_S = 250
PROMISES = {"missing", "duplicate", "early", "after_cancel", "wrong", "out_of_order", "unsettled"}


@pytest.mark.parametrize("brokers", [pytest.param(1, marks=pytest.mark.every_case), 3])
def test_no_promise_is_broken_by_random_faults(request: pytest.FixtureRequest, brokers: int) -> None:
    seconds = int(request.config.getoption("chaos_seconds"))
    ran = subprocess.run(
        [
            *(sys.executable, "-c", "from light_scheduler.cli import main; main()", "bench", "chaos", "--json"),
            *("--seconds", str(seconds), "--messages", str(seconds * MESSAGES_PER_S), "--pause", "3s"),
            *("--seed", str(request.config.getoption("chaos_seed")), "--brokers", str(brokers)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    figures = {name: figure["median"] for name, figure in json.loads(ran.stdout)["figures"].items()}
    assert {name: figures[name] for name in PROMISES} == dict.fromkeys(PROMISES, 0)
    assert figures["firings"] > seconds * MESSAGES_PER_S // 2, "the workload was not what it should be"
    assert figures["faults"] >= seconds // 6, "faults were not injected"
    assert figures["faults_broker_kill"] or brokers == 1, "no broker was killed"
