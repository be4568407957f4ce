"""How a setting is declared, and what is said of it: option, default, whether it is a secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, field
from typing import Any

from light_scheduler.durations import format_duration

SECRET = "SECRET"  # noqa: S105 - the syntax in help texts


def setting(default: Any, parse: Callable[[Any], Any], help: str, syntax: str) -> Any:
    """Declare a setting, as a field of a dataclass. `parse` raises ValueError with the reason."""
    return field(default=default, metadata={"parse": parse, "help": help, "syntax": syntax})


def is_secret(setting: Field[Any]) -> bool:
    """Return whether a setting is a secret. It has no option, since all users of the machine can see options (`ps`)."""
    return bool(setting.metadata["syntax"] == SECRET)


def option_name(setting: str) -> str:
    """Return the option of a setting."""
    return "--" + setting.replace("_", "-")


def default_text(setting: Field[Any]) -> str | None:
    """Return a setting's default as text; None if there is none."""
    value: Any = setting.default
    syntax = setting.metadata["syntax"]
    if value is None:
        return next((word for word in ("all", "unlimited") if word in syntax.split("|")), None)
    if value == ():
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return format_duration(value) if syntax == "DURATION" else str(value)
