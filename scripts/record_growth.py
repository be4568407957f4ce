"""Records a bulk command in progress while a topic gets more partitions, for `tests/unit/lanes/test_bulk_upgrades.py`.

    PYTHONPATH=.:tests:tests/unit/lanes python scripts/record_growth.py tests/golden/growth/128.json

Run it in a checkout of the version whose state is to be recorded, with that version's tests. The file has, in base64:

    changelog   of the partition that the command was sent to, with parts and totals: [offset, key, value or null]
    waiting     for each partition, what waits in its log: [offset, key or null, value or null, [[header, value], ...]]
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

from test_bulk_growth import FORMER, GROWING, Topic  # type: ignore[import-not-found]  # of the checkout


async def recorded() -> dict[str, Any]:
    """Schedule, and begin a bulk command in the partition that has the schedule, which is about to move."""
    topic = Topic()
    topic.schedule(FORMER)
    await topic.run(FORMER)
    topic.know(GROWING)
    topic.bulk(FORMER)
    await topic.run(FORMER)
    return {
        "changelog": [[each.offset, _text(each.key), _text(each.value)] for each in topic.partitions[FORMER].changelog],
        "waiting": [
            [
                [
                    each.offset,
                    _text(each.key),
                    _text(each.value),
                    [[name, _text(value)] for name, value in each.headers],
                ]
                for each in waiting
            ]
            for waiting in topic.waiting
        ],
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode("ascii")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asyncio.run(recorded()), indent=1) + "\n", encoding="ascii")
