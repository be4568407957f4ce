"""The faults of a run, drawn from a seed: kind, victim, time and duration."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from .cluster import SESSION_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS, Cluster, Worker

_SESSION_S, _TRANSACTION_S = SESSION_TIMEOUT_MS / 1_000, TRANSACTION_TIMEOUT_MS / 1_000
_FIRST_S = 3.0
"""Time of the first fault, when the workload is already running."""

KINDS = {
    "kill": 22,
    "freeze": 18,
    "restart": 12,
    "guest": 8,
    "forget": 8,
    "disk_full": 8,
    "cut": 10,
    "stall": 6,
    "broker_kill": 4,
    "broker_freeze": 4,
}
"""Kinds of faults and their relative frequency after the first round, out of 100 with one broker."""


Deed = Callable[[], object]


@dataclass(frozen=True)
class Fault:
    """A fault `at` seconds after the start of the run, for `seconds` seconds.

    `victim` is the number of a worker. `broker` is the number of a broker that fails, or to which the network fails;
    None: all.
    """

    at: float
    kind: str
    victim: int
    seconds: float
    broker: int | None = None

    def __str__(self) -> str:
        whom = "" if self.kind.startswith("broker") or self.kind == "guest" else f" worker {self.victim}"
        where = "" if self.broker is None else f" broker {self.broker}"
        return f"{self.at:.1f} s: {self.kind}{whom}{where} for {self.seconds:.1f} s"


def draw(*, seed: int, seconds: float, workers: int, pause: float, brokers: int = 1) -> list[Fault]:
    """Draw faults that begin within `seconds` seconds, `pause` seconds apart on average.

    Each kind occurs once before any repeats, so that a short run has them all. With several brokers, each fails as
    often as a single one would; the network of a worker fails to one of them, or to all.
    """
    weights = [weight * brokers if kind.startswith("broker") else weight for kind, weight in KINDS.items()]
    numbers = random.Random(f"faults {seed}")  # nosec B311 # a draw that can be repeated
    first_round = numbers.sample(list(KINDS), len(KINDS))
    faults = []
    at = _FIRST_S
    while at < seconds:
        kind = first_round.pop() if first_round else numbers.choices(list(KINDS), weights)[0]
        victim, lasts = numbers.randrange(workers), round(_duration(kind, numbers), 2)
        faults.append(Fault(round(at, 2), kind, victim, lasts, _broker(kind, numbers, brokers)))
        at += numbers.uniform(0.2, 2 * pause - 0.2)
    return faults


def _broker(kind: str, numbers: random.Random, brokers: int) -> int | None:
    if kind.startswith("broker"):
        return numbers.randrange(brokers) if brokers > 1 else 0
    if kind in ("cut", "stall") and brokers > 1:
        return numbers.choice((None, numbers.randrange(brokers)))
    return None


def _duration(kind: str, numbers: random.Random) -> float:
    match kind:
        case "freeze" | "cut" | "stall":  # brief, past the session, past the transaction
            longest = _SESSION_S + _TRANSACTION_S
            low, high = numbers.choice(((0.2, 2.0), (_SESSION_S + 0.5, _TRANSACTION_S), (longest, longest + 4.0)))
            return numbers.uniform(low, high)
        case "kill" | "forget":  # at once, or after the session
            low, high = numbers.choice(((0.0, 0.2), (0.5, 2.0), (_SESSION_S + 1.0, _SESSION_S + 4.0)))
            return numbers.uniform(low, high)
        case "guest":
            return numbers.uniform(4.0, 15.0)
        case "broker_kill":
            return numbers.uniform(0.0, 8.0)
    return numbers.uniform(0.5, 5.0)


class Faults:
    """Carries out the faults of a run on a cluster while it runs."""

    def __init__(self, cluster: Cluster, faults: Sequence[Fault], report: Callable[[str], None]) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster
        self._faults = faults
        self._report = report
        self._stopping = threading.Event()

    def play(self) -> None:
        """Return when all faults are over. Raises the first error."""
        begun = time.monotonic()
        with ThreadPoolExecutor(max_workers=len(self._cluster.workers) + 2) as pool:
            doing: list[Future[None]] = []
            for fault in self._faults:
                if self._stopping.wait(max(0.0, fault.at - (time.monotonic() - begun))):
                    break
                doing.append(pool.submit(self._do, fault))
        for future in doing:
            future.result()

    def stop(self) -> None:
        """Begin no more faults, and undo the current ones at once."""
        self._stopping.set()

    def supervise(self) -> None:
        """Restart every worker that has ended by itself."""
        for worker in self._cluster.steady:
            self._supervise(worker)

    def _do(self, fault: Fault) -> None:
        cluster = self._cluster
        is_of_broker = fault.kind.startswith("broker")
        victim = cluster.guest if fault.kind == "guest" else cluster.steady[fault.victim]
        with cluster.broker_lock if is_of_broker else victim.lock:
            if self._stopping.is_set():
                return
            begin, end = self._deeds(fault, victim)
            if not is_of_broker and victim is not cluster.guest:
                self._supervise(victim)
            self._report(str(fault))
            begin()
            self.done[fault.kind] += 1
            self._stopping.wait(fault.seconds)
            end()
            if is_of_broker:
                cluster.wait_in_sync()
            self._report(f"{fault.kind} of {fault.at:.1f} s is over")

    def _supervise(self, worker: Worker) -> None:
        """Restart a worker that has ended by itself, as its supervisor would."""
        if not worker.is_running:
            self._report(f"worker {worker.number} had ended by itself, exit code {worker.process.return_code}")
            worker.start()

    def _deeds(self, fault: Fault, victim: Worker) -> tuple[Deed, Deed]:
        """Return the functions that begin and end a fault."""
        broker = self._cluster.brokers[fault.broker or 0]

        def forget() -> None:
            victim.kill()
            victim.forget()

        deeds: dict[str, tuple[Deed, Deed]] = {
            "kill": (victim.kill, victim.start),
            "freeze": (victim.freeze, victim.thaw),
            "restart": (victim.stop, victim.start),
            "guest": (victim.start, victim.stop if fault.victim % 2 else victim.kill),
            "forget": (forget, victim.start),
            "disk_full": (victim.starve, victim.feed),
            "cut": (lambda: victim.network("cut", fault.broker), lambda: victim.network("heal", fault.broker)),
            "stall": (lambda: victim.network("stall", fault.broker), lambda: victim.network("heal", fault.broker)),
            "broker_kill": (broker.kill, broker.start),
            "broker_freeze": (
                lambda: broker.send_signal(signal.SIGSTOP),
                lambda: broker.send_signal(signal.SIGCONT),
            ),
        }
        return deeds[fault.kind]
