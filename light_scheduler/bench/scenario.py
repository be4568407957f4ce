"""The interface of scenarios: one round, and the ceiling that its rate is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .figures import UNITS
from .options import Options
from .progress import Progress
from .records import Shape
from .stage import Stage

Round = Callable[[Stage, Options, Progress], dict[str, float]]
"""Plays one round and returns its figures."""


@dataclass(frozen=True)
class Ceiling:
    """The figure that is compared with the client's ceiling, and the records of its events."""

    figure: str
    shape: Shape


@dataclass(frozen=True)
class Scenario:
    """Something to measure. Without `ceiling`, none of its figures is compared with the client's rate.

    `defaults` are the options that apply to it, besides those of every scenario. `units` are those of all figures that
    a round can have.
    """

    play: Round
    ceiling: Ceiling | None = None
    defaults: Mapping[str, int | str] = field(default_factory=lambda: {"messages": 200_000})
    units: Mapping[str, str] = field(default_factory=lambda: UNITS)
