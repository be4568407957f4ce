"""Help and completion: every command shows defaults and examples that work, and shells know the choices."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, default_text

PREFIX = "light-scheduler "


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the names of all commands that are not groups."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(commands())


def command_of(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


def help_of(path: tuple[str, ...]) -> str:
    ran = CliRunner().invoke(cli, [*path, "--help"], terminal_width=100)
    assert ran.exit_code == 0
    return ran.stdout


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_examples_that_are_calls_of_it(path: tuple[str, ...]) -> None:
    _, heading, told = help_of(path).partition("\n  Examples:\n")
    assert heading
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    assert lines
    for line in lines:
        assert line.startswith(PREFIX)
        arguments = shlex.split(line.removeprefix(PREFIX))
        assert tuple(arguments[: len(path)]) == path
        command = command_of(path)
        # Parses the call as the command line would, without carrying it out.
        with command.make_context(path[-1], arguments[len(path) :]):
            pass


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_that_is_a_setting_shows_its_default(path: tuple[str, ...]) -> None:
    told = " ".join(help_of(path).split())
    settings = {setting.name: setting for setting in fields(Settings)}
    for parameter in command_of(path).params:
        if parameter.name not in settings:
            continue
        if f"{ENVIRONMENT_PREFIX}{(parameter.name or '').upper()}]" not in told:
            continue
        default = default_text(settings[parameter.name])
        assert default is None or f"[default: {default}; env: {ENVIRONMENT_PREFIX}" in told.replace("- ", "-")


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        (["schedule", "--misfire"], ["coalesce", "skip", "all"]),
        (["schedule", "--cron-dialect"], ["unix", "cron4j", "quartz", "spring"]),
        (["schedule", "--on-conflict"], ["replace", "keep", "fail"]),
        (["schedule", "--on-past"], ["fire", "reject"]),
        (["preview", "--mode"], ["fixed-rate", "fixed-delay"]),
        (["list", "--state"], ["pending", "paused", "awaiting"]),
        (["worker", "--log-format"], ["text", "json"]),
        (["worker", "--missed"], ["fire", "dead-letter"]),
        (["worker", "--security-protocol"], ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
        (["worker", "--sasl-mechanism"], ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]),
        (["topics"], ["create", "check", "grow"]),
    ],
    ids=str,
)
def test_a_shell_completes_choices(arguments: list[str], choices: list[str]) -> None:
    completion = ShellComplete(cli, {}, "light-scheduler", "_LIGHT_SCHEDULER_COMPLETE")
    assert {item.value for item in completion.get_completions(arguments, "")} == set(choices)
