"""Contexts: named clusters for the command line, with the settings to reach each of them.

They are stored in `contexts.toml` in the user's configuration folder, with `current = NAME` and a table
`[contexts.NAME]` for each. A table has settings, and the options `url`, `tenant` and `output` of the command line. It
has no secrets: these are in files, which settings such as `token_file` name.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from light_scheduler.errors import ConfigurationError
from light_scheduler.model import TENANT_NAME

from .settings import HTTP_SECURITY_SETTINGS, SECURITY_SETTINGS, Settings, is_secret, parse_setting

_DECLARED = {setting.name: setting for setting in fields(Settings)}

CONTEXT_SETTINGS = tuple(
    name
    for name in ("app_id", "broker", "commands_topics", *SECURITY_SETTINGS, "token_file", *HTTP_SECURITY_SETTINGS)
    if not is_secret(_DECLARED[name])
)
"""The settings that a context can have, which are those to reach a cluster."""

OF_COMMANDS = ("url", "tenant", "output")
"""Other values of a context: the address of a worker, the tenant of schedules, and the output format."""

OUTPUT_FORMATS = ("table", "json", "jsonl", "yaml")
"""Output formats of the command line. The first is the default."""

NONE: Mapping[str, str] = MappingProxyType({})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOGIN = re.compile(r"(?s)^([a-z]+://)?.*@")
_FILE_MODE = 0o600


def contexts_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of a user's contexts (XDG Base Directory Specification)."""
    home = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(home) if Path(home).is_absolute() else _home() / ".config"
    return folder / "light-scheduler" / "contexts.toml"


def _home() -> Path:
    """Return the home folder. For a user without one, as in a container, return a folder that does not exist."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


@dataclass(frozen=True)
class Contexts:
    """All contexts of a user. `current` is used unless another is named."""

    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    current: str | None = None

    def get(self, name: str | None) -> Mapping[str, str]:
        """Return a context; None for the current one, which is empty if there is none. Raises ConfigurationError."""
        name = self.current if name is None else name
        if name is None:
            return NONE
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "there is none; add one with `light-scheduler config add`"
            raise ConfigurationError("context", f"{name!r} is not known. Contexts: {known}")
        return self.named[name]

    def using(self, name: str | None) -> Contexts:
        """Return the same contexts with another current one. Raises ConfigurationError if it is unknown."""
        if name is not None:
            self.get(name)
        return Contexts(self.named, name)

    def having(self, name: str, values: Mapping[str, str]) -> Contexts:
        """Return these contexts with one added or replaced. Raises ConfigurationError."""
        whole = _whole(values)
        for each, value in whole.items():
            check_for_use(each, value)
        return Contexts({**self.named, _checked_name(name): whole}, self.current)

    def without(self, name: str) -> Contexts:
        """Return these contexts without one. Raises ConfigurationError if it is unknown."""
        self.get(name)
        rest = {each: values for each, values in self.named.items() if each != name}
        return Contexts(rest, None if self.current == name else self.current)


def check_for_use(name: str, value: str) -> None:
    """Raise ConfigurationError for an invalid tenant or URL.

    Loading a file skips this check, so that one bad context from an earlier version does not block the others.
    """
    if name == "tenant" and not TENANT_NAME.fullmatch(value):
        raise ConfigurationError(
            name,
            f"{value!r} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-', first a letter or digit",
        )
    if name == "url":
        _check_url(value)


def without_login(url: str) -> str:
    """Return a URL for display, with stars instead of a login."""
    return _LOGIN.sub(r"\1***@", url)


def _check_url(url: str) -> None:
    if "@" in (url.partition("://")[2] or url).partition("/")[0]:
        raise ConfigurationError("url", "must not have a login in it: set token_file to a file with a token")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigurationError("url", f"{without_login(url)!r} must be http[s]://HOST:PORT")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            "context",
            f"{name!r} is not a name: use 1 to 64 letters, digits, '.', '_' and '-', first a letter or digit",
        )
    return name


def _whole(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a context with absolute paths. Raises ConfigurationError with an unknown or bad name."""
    whole: dict[str, str] = {}
    for name, value in values.items():
        if name not in (*CONTEXT_SETTINGS, *OF_COMMANDS):
            raise ConfigurationError(
                name, f"cannot be in a context. These can: {', '.join((*CONTEXT_SETTINGS, *OF_COMMANDS))}"
            )
        if not isinstance(value, str):
            raise ConfigurationError(name, f"must be text in a context, not {value!r}")
        if name in CONTEXT_SETTINGS and isinstance(parse_setting(name, value, origin=name), Path):
            value = str(Path(value).expanduser().absolute())
        if name == "output" and value not in OUTPUT_FORMATS:
            raise ConfigurationError(name, f"{value!r} is not one of {', '.join(OUTPUT_FORMATS)}")
        whole[name] = value
    return whole


def load_contexts(path: Path, *, check_current: bool = True) -> Contexts:
    """Read a file of contexts; if it does not exist, there are none. Raises ConfigurationError.

    Without `check_current`, the current context can be missing, so that `using` can choose another.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(
            str(path), f"cannot be read: {error}. Correct it, or remove it and add the contexts again"
        ) from error
    named: Any = document.pop("contexts", {})
    current: Any = document.pop("current", None)
    is_named = current is None or isinstance(current, str)
    if (
        document
        or not is_named
        or not isinstance(named, dict)
        or not all(isinstance(values, dict) for values in named.values())
    ):
        raise ConfigurationError(str(path), "must have `current` and tables `[contexts.NAME]`, and nothing else")
    try:
        contexts = Contexts({_checked_name(name): _whole(values) for name, values in named.items()}, current)
        if check_current:
            contexts.get(None)
        return contexts
    except ConfigurationError as error:
        raise ConfigurationError(str(path), str(error)) from error


def change_contexts(path: Path, change: Callable[[Contexts], Contexts], *, check_current: bool = True) -> None:
    """Change a file of contexts under a lock, so that concurrent changes are not lost. Raises ConfigurationError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT, _FILE_MODE)
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        save_contexts(path, change(load_contexts(path, check_current=check_current)))
    finally:
        os.close(lock)


def save_contexts(path: Path, contexts: Contexts) -> None:
    """Write a file of contexts atomically. Only its owner can read it. Raises ConfigurationError."""
    lines = [] if contexts.current is None else [f"current = {_quoted(contexts.current)}", ""]
    for name, values in sorted(contexts.named.items()):
        lines += [f"[contexts.{_quoted(name)}]", *(f"{key} = {_quoted(value)}" for key, value in values.items()), ""]
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished.touch(_FILE_MODE)
        unfinished.write_text("\n".join(lines), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be written: {error.strerror}") from error


def _quoted(text: str) -> str:
    """Return a TOML basic string: a JSON string with the one control character escaped that JSON does not escape."""
    return json.dumps(text).replace("\x7f", "\\u007f")
