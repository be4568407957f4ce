"""Commands that are delayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from light_scheduler.errors import InvalidCommand
from light_scheduler.lanes.quotas.commands import CommandQuotas
from light_scheduler.lanes.quotas.delayed_commands import Delaying
from simulation.drawing import draw_tenants

from .planting import mutant, replaced


@mutant(2, "While a command of a tenant waits, others overtake it.", draw=draw_tenants)
def _delayed_commands_are_overtaken() -> Iterator[Any]:
    takes, take = Delaying.takes, CommandQuotas.take

    def unless_one_waits(self: Delaying, record: Any, command: Any, origin: Any) -> bool:
        return command.tenant not in self._queues and takes(self, record, command, origin)

    def without_a_word(self: CommandQuotas, *command: Any) -> None:
        with suppress(InvalidCommand):
            take(self, *command)

    with replaced(Delaying, "takes", unless_one_waits), replaced(CommandQuotas, "take", without_a_word):
        yield None


@mutant(2, "A delayed command stays in the changelog when it has been carried out.", draw=draw_tenants)
def _delayed_commands_stay() -> Iterator[Any]:
    with replaced(Delaying, "_keep", lambda self, name, queue: self._queues.update({name: queue})):
        yield None
