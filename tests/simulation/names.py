"""The topics of a simulated application."""

from __future__ import annotations

from light_scheduler.model import TopicNames

from .log import INTERNAL

NAMES = TopicNames("app")
COMMANDS = NAMES.commands
TOPICS = (COMMANDS, "other-commands", "third-commands")
"""Commands topics; most histories have the first only."""
TARGET = "targets"
FRAIL = "frail"
"""Another target: the one that is in trouble in histories of that kind."""
TARGET_PARTITIONS = 2
REPLIES = "replies"
CHANGELOGS = frozenset(map(NAMES.changelog, TOPICS))
EXISTING = {TARGET, FRAIL, REPLIES, *TOPICS, *CHANGELOGS}
EXISTING |= {NAMES.history, NAMES.dead_letters, *INTERNAL}
