"""Compare what two schedulers delivered to a topic, each on its own cluster: the same keys and payloads?

$ python examples/migrating/compare.py kafka-1:9092 127.0.0.1:9092 mails

Prints what only one of them has, and how much later the second one was. Exit code 1 if they differ.
"""

import asyncio
import statistics
import sys
from collections import defaultdict

from aiokafka import AIOKafkaConsumer

QUIET_MS = 3_000  # the end of a topic is where nothing comes for so long
SHOWN = 10

Message = tuple[bytes | None, bytes | None]


async def delivered(servers: str, topic: str) -> dict[Message, list[int]]:
    """Return the timestamps (ms) of all messages, by key and payload."""
    found: dict[Message, list[int]] = defaultdict(list)
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        while batches := await consumer.getmany(timeout_ms=QUIET_MS):
            for records in batches.values():
                for record in records:
                    found[record.key, record.value].append(record.timestamp)
    return found


async def main(first: str, second: str, topic: str) -> int:
    a, b = await asyncio.gather(delivered(first, topic), delivered(second, topic))
    pairs = [zip(sorted(a[message]), sorted(b[message]), strict=False) for message in a.keys() & b.keys()]
    later = [y - x for times in pairs for x, y in times]
    print(f"in both: {len(later)}")
    differ = 0
    for servers, mine, others in ((first, a, b), (second, b, a)):
        only = [message for message, times in mine.items() for _ in times[len(others.get(message, ())) :]]
        print(f"only on {servers}: {len(only)}")
        for key, payload in only[:SHOWN]:
            print(f"  {key!r}: {(payload or b'')[:60]!r}")
        differ += len(only)
    if later:
        print(f"{second} was later by {statistics.median(later):.0f} ms (median), {max(later)} ms (most)")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:4])))
