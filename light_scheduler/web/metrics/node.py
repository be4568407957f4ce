"""The metrics of a node's processes as one exposition. Each sample has the label of its process."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.processes import Process

from .families import PREFIX

_PROCESS = "process"
_FAMILY = re.compile(rb"^(?=# HELP )", re.MULTILINE)
_HEAD = re.compile(rb"(?:#.*\n)*")


class OfProcess(Collector):
    """All metrics of a registry, with the label `process`, and the number of restarts of that process."""

    def __init__(self, registry: CollectorRegistry, process: Process) -> None:
        self._registry = registry
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        label = {_PROCESS: str(self._process.number)}
        restarts = CounterMetricFamily(
            PREFIX + "process_restarts", "Times a process of the node was started again.", labels=(_PROCESS,)
        )
        restarts.add_metric([label[_PROCESS]], self._process.restarts)
        yield restarts
        for metric in self._registry.collect():
            metric.samples = [sample._replace(labels={**sample.labels, **label}) for sample in metric.samples]
            yield metric


class Answering(Collector):
    """Which of a node's processes have answered."""

    def __init__(self, process: Process, answered: Collection[int]) -> None:
        self._numbers = range(len(process.urls))
        self._answered = answered

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        up = GaugeMetricFamily(PREFIX + "process_up", "1 if a process of the node answers.", labels=(_PROCESS,))
        for number in self._numbers:
            up.add_metric([str(number)], int(number in self._answered))
        yield up


def together(expositions: Iterable[bytes]) -> bytes:
    """Merge expositions of the text format. Samples of a family are put together, as the format requires."""
    families: dict[bytes, list[bytes]] = {}
    for exposition in expositions:
        for family in filter(None, _FAMILY.split(exposition)):
            head = _HEAD.match(family)
            assert head is not None, "it matches nothing, too"
            families.setdefault(head[0], []).append(family[head.end() :])
    return b"".join(head + b"".join(samples) for head, samples in families.items())
