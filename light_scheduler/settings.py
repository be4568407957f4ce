"""Settings: one declaration is the source of names, defaults, help texts and documentation.

An explicit option beats the environment (`LIGHT_SCHEDULER_<NAME>`), which beats `light-scheduler.toml`, which beats the
default. An unknown name or a bad value is refused with its name.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from light_scheduler.durations import format_duration, parse_duration
from light_scheduler.errors import ConfigurationError
from light_scheduler.model.delay import DelayRule, RuleError, check_rule, parse_rule
from light_scheduler.model.tenant import MAX_WEIGHT, OTHERS, TENANT_NAME, Shares
from light_scheduler.model.topics import TopicNames

ENVIRONMENT_PREFIX = "LIGHT_SCHEDULER_"
SETTINGS_FILE = "light-scheduler.toml"

# Kafka's rule for topic names, and for the names of group members too.
_KAFKA_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class CommandsTopic:
    """A topic that commands come in on, and the dialect they are written in."""

    name: str
    dialect: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a non-empty text")
    return value


def _kafka_name(value: Any) -> str:
    if not isinstance(value, str) or not _KAFKA_NAME.fullmatch(value):
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


def _duration(lowest: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        duration = parse_duration(str(value))
        if duration < lowest:
            raise ValueError(f"{value!r} must be at least {format_duration(lowest)}")
        return duration

    return parse


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
        match = _SERVER.fullmatch(server)
        if match is None or not 1 <= int(match["port"]) <= 65_535:
            raise ValueError(f"{value!r} must be kafka://host:port[,host:port...]")
    return f"kafka://{servers}"


def _path(value: Any) -> Path:
    path = Path(_text(str(value) if isinstance(value, Path) else value))
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value!r} names a home folder that does not exist") from error


def _commands_topics(value: Any) -> tuple[CommandsTopic, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} must be topic[:dialect],... or a list of such texts")
    topics = []
    for item in filter(None, (item.strip() for item in items)):
        name, colon, dialect = item.partition(":")
        if colon and not dialect:
            raise ValueError(f"{item!r} has no dialect after the colon")
        topics.append(CommandsTopic(_kafka_name(name), dialect or "native"))
    if len({topic.name for topic in topics}) < len(topics):
        raise ValueError("names a topic twice")
    return tuple(topics)


def _optional_kafka_name(value: Any) -> str | None:
    return None if value == "" else _kafka_name(value)


def _delays(value: Any) -> tuple[DelayRule, ...]:
    """Read `name=source:delay:target,...`, a list of such texts, or a table of tables."""
    if isinstance(value, dict):
        items = [_delay_table(name, table) for name, table in value.items()]
    else:
        texts = value.split(",") if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{value!r} must be name=source:delay:target,..., a list of such texts, or tables")
        items = [_delay_text(text.strip()) for text in texts if text.strip()]
    rules: dict[str, DelayRule] = {}
    for name, source, delay, target in items:
        if name in rules:
            raise ValueError(f"names rule {name} twice")
        try:
            rules[name] = parse_rule(name, source, delay, target)
        except RuleError as error:
            raise ValueError(f"rule {name}: {error}") from None
    return tuple(rules.values())


def _delay_text(text: str) -> tuple[str, str, str, str]:
    name, _, route = text.partition("=")
    parts = [part.strip() for part in route.split(":")]
    if len(parts) != 3:
        raise ValueError(f"{text!r} must be name=source:delay:target")
    return name.strip(), *parts  # type: ignore[return-value]  # there are three


def _delay_table(name: str, table: Any) -> tuple[str, str, str, str]:
    if not isinstance(table, dict) or table.keys() != {"source", "delay", "target"}:
        raise ValueError(f"rule {name} must have source, delay and target, and nothing else")
    return name, *(str(table[part]) for part in ("source", "delay", "target"))  # type: ignore[return-value]


def _rate(value: Any) -> float | None:
    if value == "unlimited":
        return None
    try:
        rate = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        rate = math.nan
    if not 0.001 <= rate <= 1e9:
        raise ValueError(f"{value!r} must be a number of firings a second, at least 0.001, or unlimited")
    return rate


def _by_tenant(
    what: str, parse: Callable[[Any], Any], *, others: bool = False
) -> Callable[[Any], tuple[tuple[str, Any], ...]]:
    """Read `tenant:value,...`, a list of such texts, or a table of tenants; with `others`, `*` is one, too."""

    def parse_all(value: Any) -> tuple[tuple[str, Any], ...]:
        if isinstance(value, dict):
            items = list(value.items())
        else:
            texts = value.split(",") if isinstance(value, str) else value
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{value!r} must be tenant:{what},..., a list of such texts, or a table")
            pairs = (text.partition(":") for text in texts if text.strip())
            items = [(tenant.strip(), text.strip()) for tenant, _, text in pairs]
        found: dict[str, Any] = {}
        for tenant, text in items:
            if not TENANT_NAME.fullmatch(tenant) and not (others and tenant == OTHERS):
                raise ValueError(f"{tenant!r} is not a tenant name")
            if tenant in found:
                raise ValueError(f"names tenant {tenant} twice")
            try:
                found[tenant] = parse(text)
            except ValueError as error:
                raise ValueError(f"the {what} of tenant {tenant}: {error}") from None
        return tuple(found.items())

    return parse_all


def _setting(default: Any, parse: Callable[[Any], Any], help: str, syntax: str) -> Any:
    return field(default=default, metadata={"parse": parse, "help": help, "syntax": syntax})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a worker and of the tools around it. Durations are ms."""

    app_id: str = _setting(
        "light-scheduler", _kafka_name, "Application id: prefix of every topic, consumer group of the workers.", "TEXT"
    )
    broker: str = _setting(
        "kafka://127.0.0.1:9092", _broker, "Kafka brokers to start from.", "kafka://HOST:PORT[,HOST:PORT...]"
    )
    data_dir: Path = _setting(  # noqa: RUF009 (a dataclass field, as all of them)
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
    delivery_retries: int = _setting(
        1,
        _integer(0, 100_000),
        "How often a firing that its target refuses is tried again, once a minute, before it is a dead letter.",
        "N",
    )
    tick: int = _setting(1_000, _duration(10), "Longest time between two scans of a partition.", "DURATION")
    stage_ahead: int = _setting(
        70,
        _duration(0),
        "How long before a full second its firings are prepared, so that only a commit is left to do; 0: not at all. "
        "Consumers that read uncommitted records see them so much early.",
        "DURATION",
    )
    session_timeout: int = _setting(
        6_000, _duration(1_000), "Silence after which the broker gives a worker's partitions to others.", "DURATION"
    )
    transaction_timeout: int = _setting(
        10_000,
        _duration(2_000),
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
        0,
        _integer(0, 32),
        "Warm copies of each partition's state that other workers keep, so that they can take over at once.",
        "N",
    )
    rebuild_processes: int = _setting(
        2,
        _integer(0, 64),
        "Partitions whose lost state is rebuilt at a time, each by a process of its own if there is much of it; 0: the "
        "worker does it itself, beside its other work.",
        "N",
    )
    instance_id: str | None = _setting(
        None,
        _optional_kafka_name,
        "Name of this worker for static membership: a restart within the session timeout moves no partition.",
        "TEXT",
    )
    max_clock_skew: int = _setting(
        1_000, _duration(1), "Difference between a worker's clock and the broker's that is warned of.", "DURATION"
    )
    max_payload_bytes: int = _setting(1_000_000, _integer(1, 100_000_000), "Largest payload of a schedule.", "BYTES")
    max_id_bytes: int = _setting(512, _integer(1, 10_000), "Longest schedule id, in bytes of UTF-8.", "BYTES")
    delays: tuple[DelayRule, ...] = _setting(
        (),
        _delays,
        "Rules that forward every record of a topic to another, a time after its timestamp; in the file also as tables "
        "`[delays.NAME]` with `source`, `delay` and `target`. More can be added while workers run.",
        "NAME=SOURCE:DELAY:TARGET,...",
    )
    tenant_weights: tuple[tuple[str, int], ...] = _setting(
        (),
        _by_tenant("weight", _integer(1, MAX_WEIGHT)),
        "While several tenants have more due than can be delivered at once, each is delivered its weight's part; 1 if "
        "not given.",
        "TENANT:WEIGHT,...",
    )
    firing_rate: float | None = _setting(
        None,
        _rate,
        "Most firings a second, of all tenants, for each commands topic; its partitions share it evenly. What is above "
        "waits.",
        "N|unlimited",
    )
    tenant_firing_rates: tuple[tuple[str, float | None], ...] = _setting(
        (),
        _by_tenant("rate", _rate, others=True),
        "The same for each tenant; `*` stands for every tenant that is not named.",
        "TENANT:N|unlimited,...",
    )
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
    def shares(self) -> Shares:
        """What tenants may have of what workers deliver."""
        return Shares(dict(self.tenant_weights), self.firing_rate, dict(self.tenant_firing_rates))

    @property
    def internal_topics(self) -> frozenset[str]:
        """The topics that only workers write: no schedule may aim at them."""
        names = self.topics
        return frozenset(
            {names.history, names.dead_letters, names.forecast, names.tenants, names.delays, names.delay_positions}
            | {names.changelog(source.name) for source in self.inputs}
        )

    @property
    def reserved_topics(self) -> frozenset[str]:
        """The application's own topics, those that it reads included: no delay rule may touch them."""
        return self.internal_topics | {self.topics.results} | {source.name for source in self.inputs}


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
    for source in settings.inputs:
        if source.name in settings.internal_topics | {settings.topics.results}:
            raise ConfigurationError("commands_topics", f"{source.name} is written by workers and takes no commands")
    for rule in settings.delays:
        try:
            check_rule(rule, settings.delays, settings.reserved_topics)
        except RuleError as error:
            raise ConfigurationError("delays", f"rule {rule.name}: {error}") from None
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
