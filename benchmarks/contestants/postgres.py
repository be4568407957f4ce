"""A private PostgreSQL server."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

from light_scheduler.devkit.leash import Leash
from light_scheduler.errors import SchedulerError
from light_scheduler.host.ports import free_port

from .contestant import await_that
from .toolbox import PROGRAMS, Toolbox

SETTINGS = {"shared_buffers": "256MB", "max_connections": "60"}
"""Differences from PostgreSQL's defaults. Each commit still waits for the disk."""

_USER = "peer"


class Postgres:
    """Runs in an empty folder until `close`. PostgreSQL refuses to run as root, so it then runs as `nobody`."""

    def __init__(self, toolbox: Toolbox, folder: Path) -> None:
        self._toolbox = toolbox
        self._port = free_port()
        folder.mkdir(mode=0o700)
        as_user: tuple[str, ...] = ()
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            as_user = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")
        data, programs = folder / "data", toolbox.postgres
        made = subprocess.run(
            [*as_user, programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C"],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        if made.returncode != 0:
            raise SchedulerError(f"PostgreSQL could not make its folder: {made.stderr}")
        own = {"port": self._port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", **SETTINGS}
        words = [word for name, value in own.items() for word in ("-c", f"{name}={value}")]
        with (folder / "log").open("ab") as log:
            self._process = Leash([*as_user, programs / "postgres", "-D", data, *words], output=log, folder=folder)
        await_that(lambda: self._asked("select 1").returncode == 0, "the start of PostgreSQL")

    @property
    def address(self) -> str:
        """The address without its scheme, which differs between clients."""
        return f"{_USER}@127.0.0.1:{self._port}/postgres"

    @property
    def port(self) -> int:
        return self._port

    @property
    def user(self) -> str:
        return _USER

    def ask(self, query: str) -> str:
        """Return the single value that a query finds; empty if there is none. Raises SchedulerError if the query
        fails."""
        asked = self._asked(query)
        if asked.returncode != 0:
            raise SchedulerError(f"PostgreSQL did not answer {query!r}: {asked.stderr.strip()[-500:]}")
        return asked.stdout.strip()

    @property
    def version(self) -> str:
        return self.ask("show server_version")

    @property
    def data_bytes(self) -> int:
        """The size of its tables and indexes, without the write-ahead log."""
        return int(self.ask("select pg_database_size(current_database())"))

    def close(self) -> None:
        self._process.stop()

    def _asked(self, query: str) -> subprocess.CompletedProcess[str]:
        address = f"postgresql://{self.address}"
        return subprocess.run(
            [self._toolbox.python, PROGRAMS / "ask_postgres.py", address, query],
            capture_output=True,
            text=True,
            check=False,
        )
