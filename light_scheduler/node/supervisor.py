"""Starts the worker processes of a node, restarts the ones that end or hang, and ends all of them together.

    supervisor ── stdin: the job, then nothing until its end ──> process 0, 1, ...
               ── the node's listening sockets, inherited ─────>

The front port is one set of listening sockets from which all processes accept connections. Each accepts them when it
has time, so a frozen or starting process gets none, and the port stays open while all of them start. With one socket
per process (SO_REUSEPORT), the system would keep assigning connections to a frozen process.

The processes have a process group of their own, so Ctrl-C only reaches the supervisor. They end when it does, for
whatever reason, since that closes their standard input.
"""

from __future__ import annotations

import asyncio
import logging.config
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from light_scheduler import processes
from light_scheduler.connection.http_tls import client_context
from light_scheduler.errors import ConfigurationError
from light_scheduler.host.alive import takes_connections
from light_scheduler.host.listening import listening_at
from light_scheduler.host.restarts import Restarts, how_it_ended
from light_scheduler.host.systemd import READY, STOPPING, WATCHDOG, Notifications
from light_scheduler.logs import logging_config
from light_scheduler.settings import Settings
from light_scheduler.worker_page import page_of_worker

from .ends import Again, exit_code, what_follows
from .job import STOP_TIMEOUT_S, Job, encoded
from .silence import ANSWER_S, ASK_EVERY_S, Silence

NAME = "supervisor"
"""Name of the supervisor in log lines. Lines of worker processes have the number of the process."""

READY_EVERY_S = 0.5
KILL_WAIT_S = 5.0

WORKER = (sys.executable, "-P", "-m", f"{__package__}.process")
"""The command line of a worker process. Like the main command, it imports nothing from the current folder."""

log = logging.getLogger("light_scheduler.node.supervisor")


def run(settings: Settings, count: int) -> int:
    """Run a node of `count` processes until SIGTERM or Ctrl-C. Return the exit code.

    Raises ConfigurationError if its port is in use, if there is no room for its processes' ports or names, or if its
    certificate cannot be used.
    """
    each = processes.settings_of_each(settings, count)
    if settings.http_security.serves_tls:
        client_context(settings.http_security)
    try:
        sockets = listening_at(settings.web_host, settings.web_port)
    except OSError as error:
        raise ConfigurationError(
            "web_port", f"cannot listen on port {settings.web_port} of {settings.web_host}: {error.strerror}"
        ) from error
    logging.config.dictConfig(logging_config(settings.log_level, settings.log_format, process=NAME))
    log.info(
        "processes: %d; HTTP of all at %s, of each at ports %d to %d, local state in %s",
        count,
        settings.web_url,
        each[0].web_port,
        each[-1].web_port,
        settings.data_dir.absolute(),
    )
    return asyncio.run(Supervisor(each, sockets, Notifications()).run())


@dataclass
class _Member:
    """One process of the node, across its restarts."""

    settings: Settings
    number: int
    running: Process | None = None
    restarts: Restarts = field(default_factory=Restarts)
    starts: int = 0
    return_code: int | None = None


class Supervisor:
    """Keeps one process running for each of the settings. All accept connections from `sockets`."""

    def __init__(
        self,
        settings: list[Settings],
        sockets: list[socket.socket],
        notifications: Notifications,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._members = [_Member(own, number) for number, own in enumerate(settings)]
        self._urls = tuple(own.web_url for own in settings)
        self._sockets = sockets
        self._notifications = notifications
        self._command = command
        self._stopping = asyncio.Event()
        self._was_asked = False

    async def run(self) -> int:
        """Run until all processes have ended. Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked, number)
        beside = [asyncio.create_task(self._notify_ready()), asyncio.create_task(self._notify_alive())]
        keeping = [asyncio.create_task(self._keep(member)) for member in self._members]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([stopping, *keeping], return_when=asyncio.FIRST_COMPLETED)
            await self._stop(keeping)
        finally:
            for task in (*beside, *keeping, stopping):
                task.cancel()
            ended = await asyncio.gather(*beside, *keeping, stopping, return_exceptions=True)
            self._signal(signal.SIGKILL)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        code = exit_code([member.return_code for member in self._members], was_asked=self._was_asked)
        log.info("all processes have ended: exit code %d", code)
        return code

    def _asked(self, number: int) -> None:
        """Stop cleanly on the first signal, at once on the second."""
        name = signal.Signals(number).name
        if not self._stopping.is_set():
            log.info("%s: stopping", name)
        elif self._was_asked:
            log.warning("%s again: killing what still runs", name)
            self._signal(signal.SIGKILL)
        self._was_asked = True
        self._stopping.set()

    async def _keep(self, member: _Member) -> None:
        """Run a process, restarting it until the node stops."""
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            if (running := await self._started(member)) is None:
                return
            began = loop.time()
            member.return_code = await self._ended(member, running)
            if self._stopping.is_set():
                return
            follows = what_follows(member.return_code, loop.time() - began, member.restarts)
            how = how_it_ended(member.return_code)
            if not isinstance(follows, Again):
                log.error("process %d ended %s. The node stops: %s", member.number, how, follows.reason)
                self._stopping.set()
                return
            log.error("process %d ended %s; starting it again in %g s", member.number, how, follows.pause_s)
            member.return_code = None
            await self._pause(follows.pause_s)

    async def _started(self, member: _Member) -> Process | None:
        """Start a process and send it its job, with as many attempts as necessary. Return None if the node stops first.

        The machine may lack resources for one more process or thread (EAGAIN, ENOMEM, a limit of pids). That is usually
        temporary, and the other processes keep running meanwhile.
        """
        process = processes.Process(member.number, self._urls, member.starts)
        sockets = [each.fileno() for each in self._sockets]
        job = Job(member.settings, process, sockets, dict(member.settings.origins))
        attempts = Restarts()
        while not self._stopping.is_set():
            try:
                running = await asyncio.create_subprocess_exec(
                    *self._command, stdin=PIPE, pass_fds=job.sockets, process_group=0
                )
            except (OSError, RuntimeError) as error:
                pause_s = attempts.pause_after(0)
                log.error("process %d cannot be started (%s); trying again in %g s", member.number, error, pause_s)
                await self._pause(pause_s)
                continue
            member.running = running
            member.starts += 1
            log.info("process %d is %d", member.number, running.pid)
            assert running.stdin is not None
            running.stdin.write(encoded(job))
            return running
        return None

    async def _ended(self, member: _Member, running: Process) -> int:
        """Wait until a process has ended. Return its exit code."""
        if self._stopping.is_set():
            running.terminate()
        watching = asyncio.create_task(self._kill_if_it_hangs(member, running))
        try:
            return await running.wait()
        finally:
            watching.cancel()
            member.running = None

    async def _kill_if_it_hangs(self, member: _Member, running: Process) -> None:
        silence = Silence()
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            if silence.record(answered=await _is_alive(member)):
                log.error("process %d has not answered for too long: killing it", member.number)
                running.kill()
                return

    async def _stop(self, keeping: list[asyncio.Task[None]]) -> None:
        """Stop all processes concurrently. Kill those that take too long."""
        self._stopping.set()
        self._notifications.send(STOPPING)
        for listening in self._sockets:
            listening.close()
        self._signal(signal.SIGTERM)
        _, late = await asyncio.wait(keeping, timeout=STOP_TIMEOUT_S)
        if late:
            log.error("%d processes have not ended within %g s: killing them", len(late), STOP_TIMEOUT_S)
            self._signal(signal.SIGKILL)
            await asyncio.wait(late, timeout=KILL_WAIT_S)

    def _signal(self, number: int) -> None:
        for member in self._members:
            if member.running is not None:
                with suppress(ProcessLookupError):
                    member.running.send_signal(number)

    async def _pause(self, seconds: float) -> None:
        """Wait for some time, or until the node stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _notify_ready(self) -> None:
        """Tell systemd once every process is ready."""
        if not self._notifications.is_wanted:
            return
        for member in self._members:
            while not await _answers(member, "/ready"):
                if self._stopping.is_set():
                    return
                await self._pause(READY_EVERY_S)
        self._notifications.send(READY)

    async def _notify_alive(self) -> None:
        if (every_s := self._notifications.watchdog_s) is not None:
            while True:
                self._notifications.send(WATCHDOG)
                await asyncio.sleep(every_s)


async def _is_alive(member: _Member) -> bool:
    """Return whether a process reacts to connections. A process that is merely too busy to answer a request must not be
    killed.

    The same is true if the check itself fails because the machine cannot start one more thread.
    """
    place = member.settings.web_host, member.settings.web_port
    try:
        return await asyncio.to_thread(takes_connections, *place, timeout=ANSWER_S)
    except RuntimeError:
        return True


async def _answers(member: _Member, path: str) -> bool:
    try:
        return await asyncio.to_thread(page_of_worker, member.settings, path, timeout=ANSWER_S) is not None
    except RuntimeError:  # the machine cannot start one more thread
        return False
