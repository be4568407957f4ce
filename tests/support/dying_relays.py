"""Relays of an outbox that are killed, one after the other: dying_relays.py DATABASE KAFKA APP_ID NAME KILLS SEED.

Each is a process of its own, and sends itself SIGKILL after some step, or within the transaction that follows it.
Prints how many died after each step, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

from light_scheduler.outbox import OutboxRelay, RelayOptions
from light_scheduler.outbox.shard import Step

LEASE_S = 0.05
LONGEST_TRANSACTION_S = 0.06


def deadly(step: Step, passes: int, delay_s: float) -> Callable[[Step], None]:
    """Return what kills this process when a step has been done so often, at once or after a delay."""
    left = passes

    def on_step(done: Step) -> None:
        nonlocal left
        left -= done is step
        if left == 0 and done is step:
            if not delay_s:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Thread(target=_kill_after, args=[delay_s], daemon=True).start()

    return on_step


def _kill_after(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def main(database: str, kafka: str, app_id: str, name: str, kills: str, seed: str) -> None:
    chance = random.Random(int(seed))
    died: Counter[str] = Counter()
    for number in range(int(kills)):
        step = list(Step)[number % len(Step)]
        within = step is Step.CLAIMED and chance.random() < 0.5
        delay_s = chance.uniform(0.001, LONGEST_TRANSACTION_S) if within else 0.0
        passes = chance.randint(1, 3)
        child = os.fork()
        if child == 0:
            options = RelayOptions(name=name, app_id=app_id, lease=LEASE_S, poll=0.01)
            asyncio.run(OutboxRelay(database, kafka, options, on_step=deadly(step, passes, delay_s)).run())
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        died[f"within {step.name}" if within else step.name] += 1
    sys.stdout.write(json.dumps(died))


if __name__ == "__main__":
    main(*sys.argv[1:])
