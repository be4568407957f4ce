"""Measures the processor cost of a command of each dialect, without a broker: accepting it, and making its message.

`python benchmarks/dialects.py` prints JSON. Each round plays every dialect in turn, so that other load on the machine
affects all of them. `us` is the minimum of the rounds, per command; `ratio_to_native` is relative to native's minimum.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Sequence
from time import process_time
from typing import Any

from aiokafka.structs import ConsumerRecord

from light_scheduler.bench.dialects import WRITERS
from light_scheduler.bench.machine import machine, versions
from light_scheduler.engine import Limits, decide, plain_id, task_due
from light_scheduler.model import Entry
from light_scheduler.wire.dialect import Dialect
from light_scheduler.wire.dialects.named import dialect_named
from light_scheduler.wire.plain import new_state, new_task_state
from light_scheduler.wire.state import decode_entry, encode_entry, identity

NOW = 1_800_000_000_000
HOUR = 3_600_000
LIMITS = Limits(1_000_000, 512)
USER_HEADERS: list[tuple[str, bytes | None]] = [("trace", b"0123456789abcdef")]


def records_of(dialect: str, count: int) -> list[Any]:
    """Return commands in the form of a dialect's producer, with 200 bytes of payload."""
    write = WRITERS[dialect]
    records = []
    for offset in range(count):
        key, value, headers = write(b"order-%012d" % offset, b"x" * 200, USER_HEADERS, "out", NOW + HOUR)
        records.append(ConsumerRecord("in", 0, offset, NOW, 0, key, value, None, len(key), len(value), tuple(headers)))
    return records


def taken(records: Sequence[Any], dialect: Dialect) -> list[bytes]:
    """Return the state records that a lane stores for commands with new ids."""
    states = []
    for record in records:
        if (task := dialect.task(record)) is not None and (due := task_due(record, task, NOW, LIMITS)) is not None:
            states.append(new_task_state(record, task, due, NOW))
            continue
        given = dialect.plain(record)
        id = None if given is None else plain_id(record, given, LIMITS)
        if given is None or id is None:
            command = dialect.decode(record)
            identity(command.tenant, command.id)
            entry = decide(command, None, NOW, LIMITS).entry
            assert entry is not None
            states.append(encode_entry(entry))
        else:
            states.append(new_state(record, id, given, NOW))
    return states


def delivered(entries: Sequence[Entry], dialect: Dialect) -> None:
    """Make the messages of due schedules."""
    for entry in entries:
        dialect.delivered(entry, NOW + HOUR, b"in")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="commands of a dialect in a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    batch, described = 2_000, machine()
    names = list(WRITERS)
    records = {name: records_of(name, batch) for name in names}
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    gc.freeze()
    for _ in range(arguments.rounds):
        for name in names:
            dialect = dialect_named(name)
            take = deliver = 0.0
            for _ in range(arguments.records // batch):
                begun = process_time()
                states = taken(records[name], dialect)
                take += process_time() - begun
                entries = [decode_entry(state) for state in states]
                begun = process_time()
                delivered(entries, dialect)
                deliver += process_time() - begun
            costs[name].append((take / arguments.records * 1e6, deliver / arguments.records * 1e6))
    print(json.dumps({"machine": described, "versions": versions(), "dialects": table(costs)}, indent=2))


def table(costs: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """Return the figures by dialect, given (taking, message) in us per command for each round."""
    least = {name: min(sum(each) for each in rounds) for name, rounds in costs.items()}
    return {
        name: {
            "us": round(least[name], 2),
            "take_us": round(min(take for take, _ in rounds), 2),
            "message_us": round(min(message for _, message in rounds), 2),
            "ratio_to_native": round(least[name] / least["native"], 2),
            "rounds_us": [round(sum(each), 2) for each in rounds],
        }
        for name, rounds in costs.items()
    }


if __name__ == "__main__":
    main()
