"""Command groups that suggest similar commands."""

from __future__ import annotations

import difflib

import click


class SuggestingGroup(click.Group):
    """Suggests a similar command if one is unknown. click does this only for options."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            similar = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            meant = f" Did you mean {similar[0]!r}?" if similar else ""
            ctx.fail(f"No such command {name!r}.{meant}")
        return super().resolve_command(ctx, args)
