"""For tests of code that uses the scheduler: `InMemoryScheduler`, its blocking counterpart, and a pytest plugin.

The plugin has three fixtures: `in_memory_scheduler` and `blocking_in_memory_scheduler`, a new scheduler for each test,
and `light_scheduler_kafka`, one real broker for the whole run.

Load it in the topmost conftest.py with `pytest_plugins = ["light_scheduler.testing"]`, or with `pytest -p
light_scheduler.testing`. To use an existing broker instead of the embedded one, set `--light-scheduler-kafka host:port`
or the environment variable TEST_KAFKA_BOOTSTRAP.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

from light_scheduler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .blocking_double import BlockingInMemoryScheduler
    from .double import InMemoryScheduler

__all__ = [
    "BOOTSTRAP_VARIABLE",
    "OPTION",
    "BlockingInMemoryScheduler",
    "ExistingKafka",
    "InMemoryScheduler",
    "Kafka",
]

__getattr__ = lazy_names(
    __name__, {"blocking_double": ("BlockingInMemoryScheduler",), "double": ("InMemoryScheduler",)}
)

OPTION = "--light-scheduler-kafka"
BOOTSTRAP_VARIABLE = "TEST_KAFKA_BOOTSTRAP"


class Kafka(Protocol):
    """The type of the fixture `light_scheduler_kafka`."""

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: `host:port`."""
        ...


@dataclass(frozen=True)
class ExistingKafka:
    """A broker that is already running."""

    bootstrap_servers: str


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("light-scheduler").addoption(
        OPTION,
        metavar="HOST:PORT",
        default=None,
        help=f"Use this Kafka in tests instead of starting one [env: {BOOTSTRAP_VARIABLE}].",
    )


@pytest.fixture
def in_memory_scheduler() -> InMemoryScheduler:
    """A scheduler without Kafka, at the machine's time: see `InMemoryScheduler`."""
    from .double import InMemoryScheduler

    return InMemoryScheduler()


@pytest.fixture
def blocking_in_memory_scheduler() -> BlockingInMemoryScheduler:
    """A scheduler without Kafka, at the machine's time: see `BlockingInMemoryScheduler`."""
    from .blocking_double import BlockingInMemoryScheduler

    return BlockingInMemoryScheduler()


@pytest.fixture(scope="session")
def light_scheduler_kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A running Kafka broker, shared by all tests of the run. Use distinct names for topics and groups in each test."""
    existing = request.config.getoption(OPTION) or os.environ.get(BOOTSTRAP_VARIABLE)
    if existing:
        yield ExistingKafka(existing)
        return
    from light_scheduler.devkit import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker
