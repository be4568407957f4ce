"""Instants as people type them: all options take the same."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from light_scheduler.cli import cli
from light_scheduler.wire import parse_instant

NOVEMBER = 1_793_491_200_000
"""2026-11-01T00:00:00Z."""


def options_of(group: click.Group, *path: str) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the options of all commands that are instants."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from options_of(command, *path, name)
        elif command is not None:
            for option in command.params:
                if option.metavar == "INSTANT":
                    yield " ".join((*path, name, *option.opts)), option


OPTIONS = dict(options_of(cli))


def test_the_options_that_are_instants_are_found() -> None:
    assert {"pipeline audit --from", "pipeline report --to", "schedule --at", "list --due-to", "why --since"} <= {
        *OPTIONS
    }


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("text", ["2026-11-01T00:00Z", "2026-11-01 01:00+01:00", "2026-11-01T00:00:00Z", str(NOVEMBER)])
def test_every_option_takes_an_instant_without_its_seconds(name: str, text: str) -> None:
    option = OPTIONS[name]
    taken = option.type_cast_value(click.Context(cli), text)
    assert (parse_instant(taken) if isinstance(taken, str) else taken) == NOVEMBER


@pytest.mark.parametrize(
    ("text", "why"),
    [("2026-11-01T00:00", "no offset"), ("2026-11-01", "not an instant"), ("2026-11-01T00Z", "not an instant")],
)
def test_what_is_no_instant_is_refused_with_what_would_be_one(text: str, why: str) -> None:
    option = OPTIONS["pipeline audit --from"]
    with pytest.raises(click.BadParameter, match=why):
        option.type_cast_value(click.Context(cli), text)
