"""What the judgement of a plain one-shot costs an audit: with its columns compared, and with a replay.

    python -m benchmarks.clearing > benchmarks/results/clearing.json

The records are those of real lanes, in memory, so nothing is measured but the code that reads commands and judges
schedules. Prints one JSON document, in microseconds of processor time for each schedule: the least of some rounds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import pyarrow as pa

from benchmarks.costs.cost import TARGET
from benchmarks.costs.lanes import CHUNK, LIMITS, SERIES, Lane
from light_scheduler.bench.machine import machine
from light_scheduler.engine import FiringRules
from light_scheduler.model import Headers, TopicNames
from light_scheduler.pipeline.audit.evidence import HISTORY, SCHEMA, SEEN, Row, asked_of, encode_asked, kafka_rows
from light_scheduler.pipeline.audit.gathering import COLUMNS
from light_scheduler.pipeline.audit.judging import judge_rows
from light_scheduler.pipeline.audit.plain_commands import read_plain
from light_scheduler.pipeline.audit.terms import Terms
from light_scheduler.pipeline.audit.verdict import Bounds, Horizon
from light_scheduler.pipeline.schemas import HEADERS_TYPE, arrow_schema
from light_scheduler.wire import decode_history, dialect_named

START = 1_767_225_600_000
ROUNDS = 5
NAMES = TopicNames("bench")
RECORDS = (
    f"topic string, partition int, offset bigint, timestamp bigint, key binary, value binary, headers {HEADERS_TYPE}"
)


class MemoryLog:
    """Keeps the records of each topic."""

    def __init__(self) -> None:
        self.now = START
        self.records: dict[str, list[dict[str, Any]]] = {NAMES.commands: [], NAMES.history: [], TARGET: []}

    def add(
        self,
        place: tuple[str, int],
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        **_limits: object,
    ) -> None:
        topic, partition = place
        if topic in self.records:
            log = self.records[topic]
            pairs = [{"key": name, "value": text} for name, text in headers or []]
            record = {"topic": topic, "partition": partition, "offset": len(log), "timestamp": self.now}
            log.append({**record, "key": key, "value": value, "headers": pairs})

    def served(self) -> None:
        """Nothing can fail."""


def lived_through() -> MemoryLog:
    """Return what one lane writes about a chunk of one-shots."""
    log = MemoryLog()
    Lane(NAMES, 0, START, log).live_through([number for number in range(2 * CHUNK) if number % SERIES][:CHUNK])
    return log


def evidence(log: MemoryLog, commands: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of evidence, by schedule."""
    rows = [{**row, "headers": []} for row in commands.select(list(Row._fields)).to_pylist()]
    for record in log.records[NAMES.history]:
        event = decode_history(record["value"])
        rows.append({**record, "tenant": event.tenant, "id": event.id, "lane": 0, "kind": HISTORY, "key": None})
    for record in log.records[TARGET]:
        headers = {header["key"]: header["value"] for header in record["headers"]}
        whose = {"tenant": headers["schedule-tenant"].decode(), "id": headers["schedule-id"].decode(), "lane": 0}
        rows.append({**record, **whose, "kind": SEEN, "value": sha256(record["value"]).hexdigest().encode()})
    rows.sort(key=lambda row: (row["tenant"], row["id"], row["kind"], row["offset"]))
    return pa.RecordBatch.from_pylist(rows, arrow_schema(SCHEMA))


def cost(run: Callable[[], object]) -> float:
    """Return the processor time of a run (microseconds for each schedule), the least of all rounds."""
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        run()
        spent.append(time.process_time() - begun)
    return round(min(spent) / CHUNK * 1e6, 1)


def main() -> None:
    """Measure, and print a document."""
    log, native = lived_through(), dialect_named("native")
    records = pa.RecordBatch.from_pylist(log.records[NAMES.commands], arrow_schema(RECORDS))
    read = partial(read_plain, records, [NAMES.commands], LIMITS, arrow_schema(COLUMNS))
    batch = evidence(log, read()[0])
    terms = Terms(FiringRules(), Bounds(0, log.now, 60_000), Horizon({TARGET: 0}, 0), NAMES.commands, 0)
    costs = {
        "reading as columns": cost(read),
        "reading one by one": cost(
            lambda: [encode_asked(asked_of(row, native, LIMITS)[2]) for row in kafka_rows(records)]
        ),
        "clearing": cost(lambda: list(judge_rows(terms)(iter([batch])))),
        "replaying": cost(lambda: list(judge_rows(replace(terms, replays_all=True))(iter([batch])))),
    }
    json.dump({"schedules": CHUNK, "microseconds": costs, "machine": machine()}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
