"""Settings: one declaration is the source of names, defaults, help texts and documentation.

An explicit option beats the environment (`LIGHT_SCHEDULER_<NAME>`), which beats `light-scheduler.toml`, which beats the
default. An unknown name or a bad value is refused with its name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from light_scheduler.durations import parse_duration
from light_scheduler.errors import ConfigurationError
from light_scheduler.model.topics import TopicNames

ENVIRONMENT_PREFIX = "LIGHT_SCHEDULER_"
SETTINGS_FILE = "light-scheduler.toml"

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class CommandsTopic:
    """A topic that commands come in on, and the dialect they are written in."""

    name: str
    dialect: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a non-empty text")
    return value


def _topic_prefix(value: Any) -> str:
    if not isinstance(value, str) or not _TOPIC_NAME.fullmatch(value):
        raise ValueError(f"{value!r} must be made of letters, digits, '.', '_' and '-', as topic names are")
    return value


def _integer(lowest: int, highest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        try:
            number = int(value) if not isinstance(value, float) else None
        except (TypeError, ValueError):
            number = None
        if number is None or isinstance(value, bool) or not lowest <= number <= highest:
            raise ValueError(f"{value!r} must be a whole number from {lowest} to {highest}")
        return number

    return parse


def _duration(value: Any) -> int:
    return parse_duration(str(value))


def _choice(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} must be one of {', '.join(choices)}")
        return str(value)

    return parse


def _lookback(value: Any) -> int | None:
    return None if value == "all" else _integer(0, 10_000_000)(value)


def _broker(value: Any) -> str:
    servers = _text(value).removeprefix("kafka://")
    for server in servers.split(","):
        if not re.fullmatch(r"(\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):\d{1,5}", server):
            raise ValueError(f"{value!r} must be kafka://host:port[,host:port...]")
    return f"kafka://{servers}"


def _path(value: Any) -> Path:
    return Path(_text(str(value))).expanduser()


def _commands_topics(value: Any) -> tuple[CommandsTopic, ...]:
    if isinstance(value, list):
        value = ",".join(map(str, value))
    topics = []
    for item in filter(None, (part.strip() for part in str(value).split(","))):
        name, _, dialect = item.partition(":")
        topics.append(CommandsTopic(_topic_prefix(name), dialect or "native"))
    if len({topic.name for topic in topics}) < len(topics):
        raise ValueError("names a topic twice")
    return tuple(topics)


def _optional_text(value: Any) -> str | None:
    return str(value) or None


def _setting(default: Any, parse: Callable[[Any], Any], help: str, syntax: str) -> Any:
    return field(default=default, metadata={"parse": parse, "help": help, "syntax": syntax})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a worker and of the tools around it. Durations are ms."""

    app_id: str = _setting(
        "light-scheduler", _topic_prefix, "Application id: prefix of every topic, consumer group of the workers.", "TEXT"
    )
    broker: str = _setting(
        "kafka://127.0.0.1:9092", _broker, "Kafka brokers to start from.", "kafka://HOST:PORT[,HOST:PORT...]"
    )
    data_dir: Path = _setting(
        Path("light-scheduler-data"), _path, "Folder for local state; it can be rebuilt from Kafka at any time.", "PATH"
    )
    web_host: str = _setting(
        "127.0.0.1", _text, "Address that the HTTP server binds to and that other workers reach it at.", "HOST"
    )
    web_port: int = _setting(6066, _integer(1, 65_535), "Port of the HTTP server.", "PORT")
    partitions: int = _setting(
        4, _integer(1, 10_000), "Partitions of topics that `topics create` makes; the bound of parallel work.", "N"
    )
    replication_factor: int = _setting(
        1, _integer(1, 32), "Copies of topics that `topics create` makes. Use 3 in production.", "N"
    )
    lookback_minutes: int | None = _setting(
        None, _lookback, "Past minutes that each tick scans besides the current one.", "N|all"
    )
    missed: Literal["fire", "dead-letter"] = _setting(
        "dead-letter",
        _choice("fire", "dead-letter"),
        "What happens to a firing that is due before the lookback.",
        "fire|dead-letter",
    )
    tick: int = _setting(1_000, _duration, "Longest time between two scans of a partition.", "DURATION")
    session_timeout: int = _setting(
        6_000, _duration, "Silence after which the broker gives a worker's partitions to others.", "DURATION"
    )
    transaction_timeout: int = _setting(
        10_000,
        _duration,
        "Age at which the broker aborts a transaction; a lane gives up at 80 % of it.",
        "DURATION",
    )
    commands_topics: tuple[CommandsTopic, ...] = _setting(
        (),
        _commands_topics,
        "Topics that commands come in on, with their dialects (native, json). Empty: {app id}-commands, native.",
        "TOPIC[:DIALECT],...",
    )
    standby_replicas: int = _setting(
        0, _integer(0, 32), "Warm copies of each partition's state on other workers. Not built yet: only 0 has effect.", "N"
    )
    instance_id: str | None = _setting(
        None,
        _optional_text,
        "Name of this worker for static membership: a restart within the session timeout moves no partition.",
        "TEXT",
    )
    max_payload_bytes: int = _setting(
        1_000_000, _integer(1, 100_000_000), "Largest payload of a schedule.", "BYTES"
    )
    max_id_bytes: int = _setting(512, _integer(1, 10_000), "Longest schedule id, in bytes of UTF-8.", "BYTES")
    log_level: str = _setting(
        "INFO", _choice("DEBUG", "INFO", "WARNING", "ERROR"), "Least level that is logged.", "DEBUG|INFO|WARNING|ERROR"
    )
    log_format: str = _setting(
        "text", _choice("text", "json"), "Layout of log lines: text, or one JSON object each.", "text|json"
    )

    @property
    def topics(self) -> TopicNames:
        return TopicNames(self.app_id)

    @property
    def bootstrap_servers(self) -> str:
        """The brokers as clients take them: `host:port,host:port`."""
        return self.broker.removeprefix("kafka://")

    @property
    def inputs(self) -> tuple[CommandsTopic, ...]:
        """The topics that commands come in on."""
        return self.commands_topics or (CommandsTopic(self.topics.commands, "native"),)

    @property
    def internal_topics(self) -> frozenset[str]:
        """The topics that only workers write: no schedule may aim at them."""
        names = self.topics
        return frozenset(
            {names.history, names.dead_letters, names.forecast, names.tenants}
            | {names.changelog(source.name) for source in self.inputs}
        )


def load_settings(
    options: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Put settings together from options, the environment and a TOML file.

    Options that are None are not given. Without `file`, `light-scheduler.toml` is read if it is in the current folder.
    Raises ConfigurationError naming an unknown or bad setting.
    """
    known = {setting.name: setting for setting in fields(Settings)}
    values: dict[str, Any] = {}
    for name, value in _from_file(file).items():
        values[name] = _parse(known, name, value, origin=name)
    for variable, value in (os.environ if environment is None else environment).items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            values[name] = _parse(known, name, value, origin=variable)
    for name, value in (options or {}).items():
        if value is not None:
            values[name] = _parse(known, name, value, origin=option_name(name))
    settings = Settings(**values)
    if settings.transaction_timeout < 2_000:
        raise ConfigurationError("transaction_timeout", "must be at least 2s")
    if settings.session_timeout < 1_000:
        raise ConfigurationError("session_timeout", "must be at least 1s")
    if settings.tick < 10:
        raise ConfigurationError("tick", "must be at least 10ms")
    return settings


def option_name(setting: str) -> str:
    """Return the command-line spelling of a setting."""
    return "--" + setting.replace("_", "-")


def _from_file(file: Path | None) -> Mapping[str, Any]:
    path = file or Path(SETTINGS_FILE)
    if file is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(str(path), f"cannot be read: {error}") from error


def _parse(known: Mapping[str, Field[Any]], name: str, value: Any, *, origin: str) -> Any:
    if name not in known:
        raise ConfigurationError(origin, f"is not known; there are {', '.join(sorted(known))}")
    try:
        return known[name].metadata["parse"](value)
    except ValueError as error:
        raise ConfigurationError(origin, str(error)) from error
