"""Loads of a file that are killed, one after the other: dying_loads.py KILLS SEED CHUNK ARGUMENTS...

Each is `light-scheduler ARGUMENTS` in a process of its own, which sends itself SIGKILL after some step, or within the
transaction that follows it. Prints how many died after each step, as JSON.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from typing import Any

from light_scheduler.cli import cli, row_chunks
from light_scheduler.cli.file_answers import LoadAnswers
from light_scheduler.cli.file_position import LoadedLines
from light_scheduler.cli.file_transactions import LoadTransactions
from light_scheduler.cli.row_chunks import RefusedRows

STEPS: tuple[tuple[Any, str], ...] = (
    (LoadTransactions, "take_over"),
    (LoadedLines, "begin"),
    (LoadTransactions, "send"),
    (LoadAnswers, "wait"),
    (RefusedRows, "append"),
    (LoadedLines, "store"),
)
WITHIN = "within a transaction"
LONGEST_TRANSACTION_S = 0.06


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_after(seconds: float) -> None:
    time.sleep(seconds)
    kill()


def die_after(owner: Any, name: str, passes: int, delay_s: float) -> None:
    """Have this process killed when a step has been done so often, at once or after a delay."""
    step, left = getattr(owner, name), passes

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0 and delay_s:
            threading.Thread(target=_kill_after, args=[delay_s], daemon=True).start()
        elif left == 0:
            kill()

    @functools.wraps(step)
    async def done_async(*args: Any) -> Any:
        result = await step(*args)
        count()
        return result

    @functools.wraps(step)
    def done(*args: Any, **named: Any) -> Any:
        result = step(*args, **named)
        count()
        return result

    setattr(owner, name, done_async if inspect.iscoroutinefunction(step) else done)


def main(kills: str, seed: str, chunk: str, *arguments: str) -> None:
    chance = random.Random(int(seed))
    row_chunks.CHUNK = int(chunk)
    died: Counter[str] = Counter()
    for number in range(int(kills)):
        place = number % (len(STEPS) + 1)
        owner, name = STEPS[place] if place < len(STEPS) else (LoadedLines, "begin")
        within = place == len(STEPS)
        delay_s = chance.uniform(0.001, LONGEST_TRANSACTION_S) if within else 0.0
        passes = 1 if name == "take_over" else chance.randint(1, 3)
        child = os.fork()
        if child == 0:
            die_after(owner, name, passes, delay_s)
            cli.main(list(arguments), standalone_mode=False)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{name}: it ended by itself, with {os.waitstatus_to_exitcode(status)}"
        died[WITHIN if within else name] += 1
    sys.stdout.write(json.dumps(died))


if __name__ == "__main__":
    main(*sys.argv[1:])
