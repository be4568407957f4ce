"""Contexts: names for the clusters that the command line works with, and what reaches each of them.

They are in `contexts.toml` in the user's own folder, which has `current = NAME` and a table `[contexts.NAME]` for each:
settings, and what only the command line knows: `url`, `tenant` and `output`. None of it is a secret: those are in
files, which settings such as `token_file` name.
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
"""The settings that a context can have: what reaches a cluster."""

OF_COMMANDS = ("url", "tenant", "output")
"""Other settings of a context: a worker to ask, the tenant of schedules, and the output format."""

OUTPUT_FORMATS = ("table", "json", "jsonl", "yaml")
"""How the command line can print data; the first is the default."""

NONE: Mapping[str, str] = MappingProxyType({})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOGIN = re.compile(r"(?s)^([a-z]+://)?.*@")
_FILE_MODE = 0o600


def contexts_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the contexts of a user are (XDG Base Directory Specification)."""
    home = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(home) if Path(home).is_absolute() else _home() / ".config"
    return folder / "light-scheduler" / "contexts.toml"


def _home() -> Path:
    """Return the user's folder, or for a user without one, as in a container, a folder that is not there."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


@dataclass(frozen=True)
class Contexts:
    """All contexts of a user; `current` is the one that holds unless another is named."""

    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    current: str | None = None

    def get(self, name: str | None) -> Mapping[str, str]:
        """Return a context; None: the current one, which has nothing if there is none. Raises ConfigurationError."""
        name = self.current if name is None else name
        if name is None:
            return NONE
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "there is none; add one with `light-scheduler config add`"
            raise ConfigurationError("context", f"{name!r} is not known. Contexts: {known}")
        return self.named[name]

    def using(self, name: str | None) -> Contexts:
        """Return the same contexts with another current one. Raises ConfigurationError if it is not known."""
        if name is not None:
            self.get(name)
        return Contexts(self.named, name)

    def having(self, name: str, values: Mapping[str, str]) -> Contexts:
        """Return these contexts and one of a name with these values. Raises ConfigurationError."""
        whole = _whole(values)
        for each, value in whole.items():
            check_for_use(each, value)
        return Contexts({**self.named, _checked_name(name): whole}, self.current)

    def without(self, name: str) -> Contexts:
        """Return these contexts less one. Raises ConfigurationError if it is not known."""
        self.get(name)
        rest = {each: values for each, values in self.named.items() if each != name}
        return Contexts(rest, None if self.current == name else self.current)


def check_for_use(name: str, value: str) -> None:
    """Raise ConfigurationError for a tenant or a url that cannot be worked with.

    A file is loaded without this: what an earlier version has let pass in one context does not hold up the others.
    """
    if name == "tenant" and not TENANT_NAME.fullmatch(value):
        raise ConfigurationError(
            name,
            f"{value!r} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-', first a letter or digit",
        )
    if name == "url":
        _check_url(value)


def without_login(url: str) -> str:
    """Return a url as it can be shown: stars stand for a login."""
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
    """Return the values of a context, with whole paths. Raises ConfigurationError naming an unknown or bad one."""
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
    """Read a file of contexts; without one there are none. Raises ConfigurationError.

    Without `check_current`, the current one can be missing: `using` chooses another.
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
    """Change a file of contexts. Of processes that do so at a time, each sees what the others have made.

    Raises ConfigurationError.
    """
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
    """Write a file of contexts, in one step, that only its owner can read. Raises ConfigurationError."""
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
    """Return a basic string of TOML: JSON's, and an escape for the one control character that JSON leaves."""
    return json.dumps(text).replace("\x7f", "\\u007f")
