"""Loads settings.

Sources, the highest priority first: an option, the environment (`LIGHT_SCHEDULER_<NAME>`), the current context of the
command line (`contexts`), `light-scheduler.toml`, the default. Errors name unknown settings and settings with bad
values.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from light_scheduler.durations import format_duration
from light_scheduler.errors import ConfigurationError
from light_scheduler.model.delay import RuleError, check_rule

from .declaring import option_name
from .settings import Origin, Settings

ENVIRONMENT_PREFIX = "LIGHT_SCHEDULER_"

OF_COMMANDS_ONLY = frozenset({"CONTEXT", "OUTPUT", "TENANT", "URL", "OUTBOX_DATABASE"})
"""Variables for options of the command line that are not settings."""

SETTINGS_FILE = "light-scheduler.toml"


def load_settings(
    options: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
    context: Mapping[str, str] | None = None,
) -> Settings:
    """Load settings from options, the environment, a context and a TOML file.

    Options with the value None are ignored. Without `file`, `light-scheduler.toml` is read if it exists in the current
    folder, which must be searchable. A secret and the setting of its file (`token`, `token_file`) override each other
    by the priority of their sources. Raises ConfigurationError with the unknown or bad setting.
    """
    layers: tuple[tuple[Origin, Mapping[str, Any]], ...] = (
        ("file", _parsed(_from_file(file), lambda name: name)),
        ("context", _parsed(context or {}, lambda name: name)),
        ("environment", _from_environment(os.environ if environment is None else environment)),
        ("option", _parsed({name: given for name, given in (options or {}).items() if given is not None}, option_name)),
    )
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for origin, layer in layers:
        for name, value in layer.items():
            if value is not None:  # an empty variable sets nothing
                values.pop(_twin(name), None)
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    settings = Settings(**values).from_origins({name: origins[name] for name in values})
    # Their errors name the bad setting.
    _ = settings.security, settings.http_security, settings.registry, settings.oidc
    if settings.token is not None and settings.token_file is not None:
        raise ConfigurationError("token", "is set, and so is token_file: remove one of them")
    for source in settings.inputs:
        if source.name in settings.internal_topics | settings.answer_topics:
            raise ConfigurationError(
                "commands_topics", f"{source.name} cannot be a commands topic: workers write to it"
            )
    if settings.stage_ahead > settings.transaction_timeout // 2:
        raise ConfigurationError(
            "stage_ahead",
            f"{format_duration(settings.stage_ahead)} is more than half of transaction_timeout "
            f"({format_duration(settings.transaction_timeout)}): a transaction that begins so early would time out "
            "before it is due",
        )
    for rule in settings.delays:
        try:
            check_rule(rule, settings.delays, settings.reserved_topics)
        except RuleError as error:
            raise ConfigurationError("delays", f"rule {rule.name}: {error}") from None
    return settings


def _twin(name: str) -> str:
    """Return the setting for the file of a secret, or the reverse. The returned setting need not exist."""
    return name.removesuffix("_file") if name.endswith("_file") else f"{name}_file"


def _parsed(given: Mapping[str, Any], origin_of: Callable[[str], str]) -> dict[str, Any]:
    return {name: parse_setting(name, value, origin=origin_of(name)) for name, value in given.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, value in environment.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name != variable and name not in OF_COMMANDS_ONLY:
            found[name.lower()] = parse_setting(name.lower(), value, origin=variable)
    return found


def _from_file(file: Path | None) -> Mapping[str, Any]:
    path = file or Path(SETTINGS_FILE)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        if file is None and isinstance(error, FileNotFoundError):
            return {}
        raise ConfigurationError(str(path), f"cannot be read: {error}{_remedy(file, error)}") from error


def _remedy(file: Path | None, error: Exception) -> str:
    """Return advice if the default file cannot be searched for, since it may contain settings."""
    if file is None and isinstance(error, PermissionError):
        return ". Run the command in a folder that this user may read, or name a file with --config"
    return ""


def parse_setting(name: str, value: Any, *, origin: str) -> Any:
    """Parse the value of a setting. Raises ConfigurationError, which names `origin` as the setting."""
    known = {setting.name: setting for setting in fields(Settings)}
    if name not in known:
        similar = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {similar[0]}?" if similar else "."
        raise ConfigurationError(origin, f"is not a setting{hint} Settings: {', '.join(sorted(known))}")
    try:
        return known[name].metadata["parse"](value)
    except ValueError as error:
        raise ConfigurationError(origin, str(error)) from error
