"""How much is tried of what can be repeated without end, and one broker for all processes of a run.

`light_scheduler.testing` says how a run gets its broker, `tests/pipeline` how it gets its Spark session, and
`support.scheduling` who runs what.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support import scheduling
from support.secured import SecuredKafka, secured_kafka
from support.tries import ALL, PART

from light_scheduler.host import ports
from light_scheduler.testing import BOOTSTRAP_VARIABLE, OPTION, Kafka

# How long an example takes says how busy the machine is.
for name, examples in {"all": ALL, "a part": PART}.items():
    settings.register_profile(name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])

EXTRA = {"soak": "--soak", "every_case": "--every-case"}
"""Marker of tests -> the option with which they run."""


_NUMBERS = (
    ("--fired", 100_000, "Schedules fired before a scan is timed."),
    ("--histories", 100, "Simulated histories (tests/simulation)."),
    ("--audited", 2_000, "Schedules of audits (tests/pipeline)."),
    ("--archived", 20_000, "Records archived (tests/pipeline)."),
    ("--archive-kills", 2, "Kills meanwhile (tests/pipeline)."),
    ("--audit-kills", 2, "Kills of workers before (tests/pipeline)."),
    ("--imported", 300_000, "Schedules imported (test_import_kills)."),
    ("--import-kills", 2, "Kills meanwhile (test_import_kills)."),
    ("--delayed-records", 20_000, "Records of the chaos test of delay rules."),
    ("--fuzz-inputs", 6_000, "Inputs for all decoders together (tests/fuzz)."),
    ("--fuzz-seed", 1, "Which inputs (tests/fuzz)."),
    ("--iterations", 100_000, "Steps that a fixed rate is followed for, one by one."),
    (
        "--chaos-seconds",
        60,
        "How long faults happen at random (tests/chaos/test_random_faults.py); the run takes a minute more. "
        "Long runs: light-scheduler bench chaos.",
    ),
    ("--concurrent-calls", 1_000, "Calls of one client at once (clients)."),
    (
        "--pending",
        200_000,
        "Schedules that wait while a topic grows, with --soak (tests/chaos/test_more_partitions.py).",
    ),
    (
        "--relay-kills",
        10,
        "How often relays of an outbox are killed (tests/integration/test_outbox.py); 200 take some minutes.",
    ),
    ("--chaos-seed", 1, "What those faults are drawn from."),
    ("--load-rows", 60_000, "Rows of the load that is killed."),
    ("--load-kills", 1, "How often the load is killed (load/test_kills)."),
)
"""Options with a number: its default, and what it is."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("light-scheduler: how much is tried")
    group.addoption("--soak", action="store_true", help="Also the tests marked `soak`, which take minutes; CI does.")
    group.addoption(
        "--every-case",
        action="store_true",
        help="Also what is marked `every_case`: further cases and near relatives of what --soak runs; for a night.",
    )
    for name, default, text in _NUMBERS:
        group.addoption(name, type=int, default=default, metavar="N", help=text)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("all" if config.getoption("--soak") else "a part")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in its background so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if (process := getattr(config, "workerinput", None)) is not None:
        ports.PORTS = scheduling.share_of(ports.PORTS, process["workerid"], process["workercount"])
    os.environ["XDG_CONFIG_HOME"] = str(config.rootpath / "build" / "no-contexts")  # not those of who runs the tests
    shares = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not shares or config.getoption(OPTION) or BOOTSTRAP_VARIABLE in os.environ:
        return
    from light_scheduler.devkit import EmbeddedBroker, keep_startup

    with suppress(OSError):  # nothing can be kept there: starts take longer
        keep_startup()
    broker = EmbeddedBroker().start()
    config.add_cleanup(broker.close)
    os.environ[BOOTSTRAP_VARIABLE] = broker.bootstrap_servers


@pytest.fixture(scope="session")
def kafka(light_scheduler_kafka: Kafka) -> Kafka:
    """The broker of this run."""
    return light_scheduler_kafka


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """A broker of the module's own, with TLS, logins and ACLs."""
    with secured_kafka(tmp_path_factory.mktemp("secured")) as kafka:
        yield kafka


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    return scheduling.Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {marker for marker, option in EXTRA.items() if not config.getoption(option)}
    extra = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if extra:
        config.hook.pytest_deselected(items=extra)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, left_out))]
    if hasattr(config, "workerinput"):
        with_soaks = config.getoption("--soak")
        items.sort(key=lambda item: scheduling.turn_of(item.nodeid, with_soaks=with_soaks))
