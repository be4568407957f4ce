"""Workers that end are reported and started again, with pauses that grow."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.devkit.supervisor import Supervisor
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.settings import Settings


class FakeWorker(WorkerProcess):
    """Ends when it is told to."""

    def __init__(self) -> None:
        super().__init__(Settings(), Path("/no-such-folder/worker.log"))
        self.starts = 0
        self.ended: int | None = None

    @property
    def return_code(self) -> int | None:
        return self.ended

    def start(self) -> None:
        self.starts += 1
        self.ended = None


class Scene:
    def __init__(self) -> None:
        self.time = 0.0
        self.said: list[str] = []
        self.worker = FakeWorker()
        self.supervisor = Supervisor([self.worker], self.said.append, now=lambda: self.time)

    def check_at(self, time: float) -> None:
        self.time = time
        self.supervisor.check()


def test_a_running_worker_is_left_alone() -> None:
    scene = Scene()
    scene.check_at(1)
    assert (scene.said, scene.worker.starts) == ([], 0)


def test_a_worker_that_ended_is_reported_once_and_started_again_after_a_pause() -> None:
    scene = Scene()
    scene.worker.ended = -9
    scene.check_at(100)
    scene.check_at(100.5)
    assert len(scene.said) == 1
    assert "by signal 9" in scene.said[0]
    assert scene.worker.starts == 0
    scene.check_at(101)
    assert scene.worker.starts == 1
    assert "runs again" in scene.said[1]


def test_pauses_grow_while_a_worker_keeps_ending_and_shrink_once_it_stays() -> None:
    scene = Scene()
    pauses = []
    time = 0.0
    for restarts in range(7):
        scene.worker.ended = 1
        scene.check_at(time)
        ended_at = time
        while scene.worker.starts == restarts:
            time += 0.5
            scene.check_at(time)
        pauses.append(time - ended_at)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    scene.worker.ended = 1
    scene.check_at(time + 60)
    scene.check_at(time + 61)
    assert scene.worker.starts == 8
