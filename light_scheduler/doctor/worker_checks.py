"""Checks of a running worker's `/info`: its lanes, and its unavailable targets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from light_scheduler.settings import Settings
from light_scheduler.wire.instants import format_instant
from light_scheduler.worker_page import page_of_worker

from .check import MOST_NAMED, Check, some

Info = Mapping[str, Any]
"""The document at a worker's `/info`; empty if no worker answers."""
ANSWER_S = 2.0


def info_of_worker(settings: Settings) -> Info:
    """Return the `/info` of the worker on the web port; empty if none answers."""
    page = page_of_worker(settings, "/info", timeout=ANSWER_S, token=settings.web_token)
    try:
        info = json.loads(page or b"{}")
    except ValueError:
        return {}
    return info if isinstance(info, dict) and "lanes" in info else {}


def check_lanes(info: Info) -> Iterator[Check]:
    """Check whether the lanes of the worker on the web port have read every command exactly once."""
    for lane in info.get("lanes", []):
        if lane.get("jump"):
            yield Check(
                "commands",
                "warn",
                f"{lane['topic']}-{lane['partition']}: {lane['jump']}",
                "find out which commands were lost, and send them again: see docs/operating.md",
            )


def check_targets(info: Info) -> Iterator[Check]:
    """List the targets that the worker on the web port cannot write to, starting with the most waiting firings."""
    if "targets" not in info:
        return
    targets = sorted(info["targets"], key=lambda target: (-target["waiting"], target["topic"]))
    for target in targets[:MOST_NAMED]:
        topic, partitions, waiting = target["topic"], target["partitions"], target["waiting"]
        place = f"{topic}, partition{_s(partitions)} {some(partitions)}" if partitions else topic
        since = format_instant(target["unavailable_since"])
        yield Check(
            "targets",
            "warn",
            f"{place}: unavailable since {since}, waiting firings: {waiting:,}; {target['reason']}",
            f"inspect it with kafka-topics.sh --describe --topic {topic}. Its firings go out when it is available "
            "again: see docs/operating.md",
        )
    if len(targets) > MOST_NAMED:
        yield Check(
            "targets",
            "warn",
            f"{len(targets) - MOST_NAMED} more topics are unavailable",
            "see `targets` in /info of the worker",
        )
    if not targets:
        yield Check("targets", "ok", "no target topic is unavailable")


def _s(many: Sequence[int]) -> str:
    return "" if len(many) == 1 else "s"
