"""Compare what two schedulers delivered to a topic, each on its own cluster: the same keys and payloads?

$ python examples/migrating/compare.py kafka-1:9092 127.0.0.1:9092 mails

Prints the messages that only one of them has, and how much later the second one was. Exit code 1 if they differ. If the
first cluster needs TLS or a login, put these settings into a file: --source-config source.toml
"""

import argparse
import asyncio
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer

from light_scheduler.settings import load_settings

QUIET_MS = 3_000  # a topic ends where nothing arrives for this long
SHOWN = 10

Message = tuple[bytes | None, bytes | None]


async def delivered(topic: str, cluster: dict[str, Any]) -> dict[Message, list[int]]:
    """Return the timestamps (ms) of all messages, by key and payload."""
    found: dict[Message, list[int]] = defaultdict(list)
    async with AIOKafkaConsumer(
        topic, isolation_level="read_committed", auto_offset_reset="earliest", **cluster
    ) as consumer:
        while batches := await consumer.getmany(timeout_ms=QUIET_MS):
            for records in batches.values():
                for record in records:
                    found[record.key, record.value].append(record.timestamp)
    return found


async def compare(first: dict[str, Any], second: str, topic: str) -> int:
    a, b = await asyncio.gather(delivered(topic, first), delivered(topic, {"bootstrap_servers": second}))
    pairs = [zip(sorted(a[message]), sorted(b[message]), strict=False) for message in a.keys() & b.keys()]
    later = [y - x for times in pairs for x, y in times]
    print(f"in both: {len(later)}")
    differ = 0
    for servers, mine, others in ((first["bootstrap_servers"], a, b), (second, b, a)):
        only = [message for message, times in mine.items() for _ in times[len(others.get(message, ())) :]]
        print(f"only on {servers}: {len(only)}")
        for key, payload in only[:SHOWN]:
            print(f"  {key!r}: {(payload or b'')[:60]!r}")
        differ += len(only)
    if later:
        print(f"{second} was later by {statistics.median(later):.0f} ms (median), {max(later)} ms (maximum)")
    return 1 if differ else 0


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("first", help="kafka-1:9092")
    parser.add_argument("second", help="127.0.0.1:9092")
    parser.add_argument("topic")
    parser.add_argument("--source-config", type=Path, help="Settings file with the TLS and the login of the first.")
    given = parser.parse_args()
    secured = load_settings(file=given.source_config).connection.aiokafka() if given.source_config else {}
    return await compare({**secured, "bootstrap_servers": given.first}, given.second, given.topic)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
