"""Generate the blocking client from the asyncio one, with the same calls, arguments and types.

With --check, fail if it is not up to date. The differences between the two are in their channels.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "light_scheduler" / "client"
SOURCE = CLIENT / "scheduler_client.py"
MADE = CLIENT / "blocking_client.py"

_RULES = (
    (
        r'^"""SchedulerClient: the scheduler from asyncio code."""',
        '"""BlockingSchedulerClient: the scheduler from threads.\n\n'
        'Made from scheduler_client.py by `make docs`: change that.\n"""',
    ),
    (
        r"from \.channel import CONNECT_TIMEOUT_S, Channel, ChannelTopics, MakeCommand",
        "from .blocking_channel import Channel\nfrom .channel import CONNECT_TIMEOUT_S, ChannelTopics, MakeCommand",
    ),
    (
        r"\{\*\*(connection_of\(bootstrap_servers, security\))\.aiokafka\(\), \*\*\(kafka_options or \{\}\)\}",
        r"\1, kafka_options or {}",
    ),
    (r"every aiokafka client", "every confluent-kafka client"),
    (r"check_aiokafka_options", "check_librdkafka_options"),
    (
        r"(Schedules messages and controls schedules)\. Waits for the answer of the scheduler unless",
        r"\1, from any number of threads. Waits for answers unless",
    ),
    (r"AsyncGenerator\[(.*), None\]", r"Generator[\1, None, None]"),
    (r"requests: Requests", "requests: Iterable[ScheduleRequest]"),
    (r"import AsyncGenerator, ", "import Generator, Iterable, "),
    (r"async_chunks", "chunks"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\b(SchedulerClient|Channel)\b", r"Blocking\1"),
)


def made() -> str:
    """Return the text of the blocking client."""
    text = SOURCE.read_text(encoding="utf-8")
    for pattern, replacement in _RULES:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if count == 0:
            sys.exit(f"{SOURCE.name} has nothing like {pattern!r}: change the rules in {Path(__file__).name}")
    for command in (
        ["check", "--quiet", "--fix", "--unsafe-fixes", "--select", "F401,I,C416,UP028"],
        ["format", "--quiet"],
    ):
        ran = subprocess.run(  # nosec B603 # our own arguments
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", MADE, "-"],
            input=text, capture_output=True, text=True, check=True, cwd=CLIENT,
        )  # fmt: skip
        text = ran.stdout
    return text


def main() -> None:
    text = made()
    if "--check" not in sys.argv[1:]:
        MADE.write_text(text, encoding="utf-8")
    elif not MADE.exists() or MADE.read_text(encoding="utf-8") != text:
        sys.exit(f"{MADE.name} is not what {SOURCE.name} says: run `make docs`")


if __name__ == "__main__":
    main()
