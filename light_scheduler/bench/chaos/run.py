"""A run: commands and faults concurrently, then a quiet time until no work is left, then the verdict."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from light_scheduler.bench.progress import Progress

from .checker import Record, Verdict, check
from .cluster import Cluster
from .completions import Completer
from .faults import Faults, draw
from .reading import read_topic
from .sending import Sender
from .watching import Watcher
from .workload import COMPLETED, Workload

_SHOWN = 25
"""Number of faults that are printed; `faults.jsonl` has all of them."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run. Equal values give the same run. Faults begin `pause` seconds apart on average."""

    seed: int
    seconds: float
    messages: int
    payload_bytes: int
    partitions: int
    workers: int
    brokers: int
    pause: float


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `injected` counts the faults by kind; `unsettled` describes unfinished work."""

    verdict: Verdict
    injected: Counter[str]
    unsettled: str | None

    @property
    def has_failed(self) -> bool:
        return bool(self.verdict.faults) or self.unsettled is not None


def run(plan: Plan, progress: Progress) -> Outcome:
    """Play a plan. It takes about a minute longer than the plan's seconds.

    If there are faults, they are printed, and logs, topics and state are kept. Raises SchedulerError if the run itself
    failed.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"light-scheduler-chaos-{plan.seed}-"))
    has_failed = True
    try:
        outcome = _play(plan, folder, progress)
        has_failed = outcome.has_failed
    finally:
        if has_failed:
            progress.note(f"What is left of the run with seed {plan.seed} is in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for line in itertools.islice(_lines(outcome), _SHOWN):
        progress.note(line)
    return outcome


def _play(plan: Plan, folder: Path, progress: Progress) -> Outcome:
    progress.phase("starting Kafka and workers")
    with (
        Cluster(folder, plan.partitions, plan.workers, plan.brokers) as cluster,
        (folder / "events.log").open("w", buffering=1) as events,
    ):
        servers, begun = cluster.bootstrap_servers, time.monotonic()

        def report(line: str) -> None:
            events.write(f"{time.monotonic() - begun:7.2f}  {line}\n")

        planned = draw(
            seed=plan.seed, seconds=plan.seconds, workers=plan.workers, pause=plan.pause, brokers=plan.brokers
        )
        faults = Faults(cluster, planned, report)
        workload = Workload(
            seed=plan.seed,
            seconds=plan.seconds,
            messages=plan.messages,
            payload_bytes=plan.payload_bytes,
            partitions=plan.partitions,
            topics=cluster.topics,
        )
        senders = [Sender(servers, cluster.commands_topic, cluster.topics) for _ in range(2)]
        progress.phase("chaos", plan.messages)
        with (
            Watcher(servers, cluster.partitions) as watcher,
            Completer(servers, cluster.topics.target(COMPLETED), senders[1]),
        ):
            with ThreadPoolExecutor(max_workers=1) as pool:
                chaos = pool.submit(faults.play)
                try:
                    senders[0].play(workload.commands(), progress)
                except BaseException:
                    faults.stop()
                    raise
                chaos.result()
            report("all commands are sent, all faults are over")
            senders[0].flush()
            progress.phase("waiting until nothing is left to do")
            faults.supervise()
            cluster.settle()
        unsettled = cluster.settle()  # after the last completions
        report(unsettled or "nothing is left to do")
        cluster.stop_workers()
        progress.phase("checking")
        verdict = _verdict(cluster)
        verdict.faults.extend(watcher.faults)
    (folder / "faults.jsonl").write_bytes(b"".join(msgspec.json.encode(fault) + b"\n" for fault in verdict.faults))
    return Outcome(verdict, faults.done, unsettled)


def _verdict(cluster: Cluster) -> Verdict:
    def read(*topics: str) -> Iterator[Record]:
        return itertools.chain.from_iterable(read_topic(cluster.bootstrap_servers, topic) for topic in topics)

    return check(
        commands=read(cluster.commands_topic),
        results=read(cluster.topics.answers),
        deliveries=read(*cluster.partitions),
        dead_letters=read(cluster.dead_letters_topic),
        partitions=cluster.partitions,
    )


def _lines(outcome: Outcome) -> Iterator[str]:
    if outcome.unsettled is not None:
        yield f"Not everything was done in the end: {outcome.unsettled}"
    for fault in outcome.verdict.faults:
        yield f"{fault.kind}: {fault.whose}: {fault.what}"
