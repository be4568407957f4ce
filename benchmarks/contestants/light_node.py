"""light-scheduler: one node of two processes, comparable to the Java peer's two threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from .light import LightScheduler


class LightNode(LightScheduler):
    title = "light-scheduler, two processes"
    processes: ClassVar[int] = 2
    settings: ClassVar[Mapping[str, object]] = {"workers": 1, "processes": 2, "partitions": 4}
