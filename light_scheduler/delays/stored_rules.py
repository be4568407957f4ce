"""Delay rules stored in their compacted topic."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from light_scheduler.errors import FormatError
from light_scheduler.model import DelayRule
from light_scheduler.wire.delays import decode_rule

log = logging.getLogger(__name__)


def stored_rules(entries: Mapping[bytes, bytes]) -> list[DelayRule]:
    """Return the rules in a compacted topic, in its order. Invalid records are logged and skipped."""
    rules = []
    for key, value in entries.items():
        try:
            _, rule = decode_rule(key, value)
        except FormatError as error:
            log.warning("skipping a record of the delay rules: %s", error)
            continue
        if rule is not None:
            rules.append(rule)
    return rules
