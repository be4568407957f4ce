"""Ingest: commands that are in their topic before the worker starts, due in a month.

Faults come from the worker's own counts: a schedule that is not pending is missing, a command carried out twice is
duplicate, and any firing is early.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from light_scheduler.bench.dialects import WRITERS, framed, registered
from light_scheduler.bench.looks import Look, follow, span_of
from light_scheduler.bench.options import Options
from light_scheduler.bench.producing import produce
from light_scheduler.bench.progress import Progress
from light_scheduler.bench.records import Shape
from light_scheduler.bench.scenario import Ceiling, Scenario
from light_scheduler.bench.schema_registry import serve_schemas
from light_scheduler.bench.stage import Stage
from light_scheduler.bench.workload import DueTimes, Payloads, Workload
from light_scheduler.clock import SystemClock

_FAR_MS = 30 * 24 * 3_600_000


def play(stage: Stage, options: Options, progress: Progress) -> dict[str, float]:
    """Play one round."""
    write = framed(options.dialect) if options.framed else WRITERS[options.dialect]
    with (
        _registry(options) as registry,
        stage.application(dialect=options.dialect, schema_registry=registry) as application,
    ):
        workload = Workload(
            messages=options.messages,
            payloads=Payloads(options.payload_bytes, options.seed),
            target=application.target,
            due=DueTimes(SystemClock().now() + _FAR_MS),
            write=write,
        )
        progress.phase("sending commands", options.messages)
        produce(application.bootstrap_servers, application.settings.topics.commands, workload, progress)
        progress.phase("accepting", options.messages)
        application.worker.start()
        looks = follow(application.worker, lambda seen: seen.carried_out, options.messages, progress)
    return figures(looks, options.messages)


def _registry(options: Options) -> AbstractContextManager[str | None]:
    """Serve the schemas of framed commands. Yield the address; None if commands are not framed."""
    return serve_schemas(registered(options.dialect)) if options.framed else nullcontext()


def figures(looks: list[Look], messages: int) -> dict[str, float]:
    """Return the figures of a round, given all looks at its worker."""
    span = span_of(looks, lambda seen: seen.accepted)
    found: dict[str, float] = {"accepted_per_s": span.per_s}
    if span.cpu_us_per_event is not None:
        found["worker_cpu_us_per_event"] = span.cpu_us_per_event
    end = looks[-1]
    return {
        **found,
        "missing": messages - end.pending,
        "duplicate": max(0, end.carried_out - messages),
        "early": end.firings,
    }


SCENARIO = Scenario(
    play,
    Ceiling("accepted_per_s", Shape.ACCEPTANCE),
    defaults={
        "messages": 200_000,
        "dialect": "native",
        "framed": False,
        "security_protocol": "PLAINTEXT",
        "sasl_mechanism": "PLAIN",
    },
)
