"""Errors name a field as the command line does."""

from __future__ import annotations

import click
import pytest

from light_scheduler.cli import cli
from light_scheduler.cli.parameter_names import parameter_name


@pytest.mark.parametrize(
    ("path", "field", "expected"),
    [
        (["complete"], "firing-id", "FIRING_ID"),
        (["complete"], "attempt", "--attempt"),
        (["dead-letters", "show"], "letter", "LETTER"),
        (["dead-letters", "redrive"], "letter", "LETTER"),
        (["get"], "id", "ID"),
        (["list"], "id_prefix", "--id-prefix"),
    ],
)
def test_an_argument_is_no_option(path: list[str], field: str, expected: str) -> None:
    command: click.Command = cli
    context = click.Context(cli)
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    with context:
        assert parameter_name(field) == expected
