"""Command groups whose commands are imported on use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from .suggesting import SuggestingGroup
from .verbosity import verbosity_options


class LazyGroup(SuggestingGroup):
    """A group in which each command is the `command` of a module.

    `modules` maps a command to its module in `package`, and to one line of help, so that `--help` imports nothing.
    """

    def __init__(self, *args: Any, package: str, modules: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            return None
        command: click.Command = import_module(f"{self._package}.{self._modules[cmd_name][0]}").command
        _add_verbosity(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in self._modules.items()])


def _add_verbosity(command: click.Command) -> None:
    """Allow `-q` and `-v` after a command and its subcommands, too."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _add_verbosity(below)
    elif not any(option.name == "quiet" for option in command.params):
        command.params += verbosity_options(hidden=True)
