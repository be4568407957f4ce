"""Formats values of settings as text for the environment or an option."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path
from typing import Any

from light_scheduler.connection import Secret
from light_scheduler.durations import format_duration
from light_scheduler.model.delay import DelayRule

from .values import CommandsTopic


def setting_text(setting: Field[Any], value: Any) -> str:
    """Return a value as text, including secrets; empty if the setting has no value. Paths are absolute."""
    if setting.metadata["syntax"] == "DURATION":
        return format_duration(value)
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, tuple):
        return ",".join(map(_item, value))
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return {"lookback_minutes": "all", "firing_rate": "unlimited"}.get(setting.name, "")
    return str(value.absolute() if isinstance(value, Path) else value)


def _item(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, CommandsTopic):
        return f"{item.name}:{item.dialect}"
    if isinstance(item, DelayRule):
        return f"{item.name}={item.source}:{format_duration(item.delay)}:{item.target}"
    tenant, value = item
    return f"{tenant}:{'unlimited' if value is None else value}"
