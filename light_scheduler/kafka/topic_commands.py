"""Shell commands that create or change topics. Pure: does not ask a broker.

They can be copied into any shell, so each names the cluster, the application and the login. Only secrets are left out.
Kafka's own tools log in with `admin.properties` (docs/security.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from light_scheduler.settings import SECURITY_SETTINGS, Settings, is_secret, option_name
from light_scheduler.settings.texts import setting_text
from light_scheduler.settings.values import COMPATIBLE_DIALECTS, CommandsTopic

from .topic_plan import partitions_of_changelogs

_DECLARED = {setting.name: setting for setting in fields(Settings)}
_ALWAYS = ("app_id", "broker")
_OF_APPLICATION = (*_ALWAYS, "commands_topics", *(name for name in SECURITY_SETTINGS if not is_secret(_DECLARED[name])))
_OF_NEW_TOPICS = ("replication_factor", "max_payload_bytes")


def create_topics_command(settings: Settings, existing: Mapping[str, int] | None = None) -> str:
    """Return the command that creates all missing topics. `existing` maps existing topics to their partition counts.

    A commands topic whose changelog exists needs as many partitions as that, whatever the settings say.
    """
    create = ["light-scheduler", "topics", "create"]
    counts = existing or {}
    if of_changelogs := partitions_of_changelogs(settings, counts):
        missing = [source.name for source in settings.inputs if source.name not in counts]
        partitions = max(of_changelogs.get(name, settings.partitions) for name in missing)
        options = _options(settings, (*_OF_APPLICATION, *_OF_NEW_TOPICS))
        return _line([*create, "--partitions", str(partitions), *options])
    return _line([*create, *_options(settings, (*_OF_APPLICATION, "partitions", *_OF_NEW_TOPICS))])


def even_partitions_command(settings: Settings, source: CommandsTopic, commands: int, changelog: int) -> str:
    """Return the command that gives a commands topic and its changelog the larger of their partition counts.

    In our own dialects, schedules follow their keys to the new partitions. In other dialects, they cannot and
    `topics grow` refuses, so Kafka's own tool adds the missing partitions.
    """
    if source.dialect in COMPATIBLE_DIALECTS:
        smaller = source.name if commands < changelog else settings.topics.changelog(source.name)
        change = ["--alter", "--topic", smaller, "--partitions", str(max(commands, changelog))]
        return _line(["kafka-topics.sh", *_of_kafka_tools(settings), *change])
    return grow_topic_command(settings, source.name, max(commands, changelog))


def grow_topic_command(settings: Settings, topic: str, partitions: int) -> str:
    """Return the command that adds partitions to a commands topic and its changelog, and shows the moving schedules."""
    grow = ["topics", "grow", "--partitions", str(partitions), "--commands-topic", topic]
    return _line(["light-scheduler", *grow, *_options(settings, _OF_APPLICATION)])


def configure_topic_command(settings: Settings, topic: str, config: str) -> str:
    """Return the command that sets a topic's configuration `name=value`."""
    change = ["--alter", "--topic", topic, "--add-config", config]
    return _line(["kafka-configs.sh", *_of_kafka_tools(settings), *change])


def _of_kafka_tools(settings: Settings) -> Iterator[str]:
    yield from ("--bootstrap-server", settings.bootstrap_servers)
    if settings.connection.is_secured:
        yield from ("--command-config", "admin.properties")


def _options(settings: Settings, names: Iterable[str]) -> Iterator[str]:
    """Yield command line options for these settings, without those that have their default value."""
    for name in names:
        setting, value = _DECLARED[name], getattr(settings, name)
        if name in _ALWAYS or value != setting.default:
            yield from (option_name(name), setting_text(setting, value))


def _line(words: Sequence[str]) -> str:
    return shlex.join(words)
