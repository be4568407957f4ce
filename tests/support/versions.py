"""Workers of earlier versions, from the git history or the archives that `scripts/record_version.py` has made of it."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.model import Headers
from light_scheduler.settings import ENVIRONMENT_PREFIX
from light_scheduler.wire.state_format import FORMAT_VERSION
from scripts.record_version import tar_of

from .application import Application, WorkerProcess

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "versions"
ARCHIVES = {int(path.name.partition(".")[0]): path for path in sorted(GOLDEN.glob("*.tar.xz"))}
"""By the format of the state that they write."""

BEFORE_LACKING = "50bca452"
"""The last commit whose workers refuse totals that miss partitions (see `state_format.LACKING`)."""

_LOOK = """
import json
from dataclasses import fields
from light_scheduler import __file__
from light_scheduler.settings import Settings
from light_scheduler.wire.state import FORMAT_VERSION
print(json.dumps({"file": __file__, "format": FORMAT_VERSION, "settings": [field.name for field in fields(Settings)]}))
"""


_MARK = """
import json, sys
from light_scheduler.wire.record import Copy
from light_scheduler.wire.relay import mark_of
headers = [(name, value.encode()) for name, value in json.load(sys.stdin)]
print(type(mark_of(Copy(None, None, headers, 0, 0, 0, (0, 0)))).__name__)
"""

_REFUSE_POSITION = """
import json, sys
from pathlib import Path
from light_scheduler.errors import FormatTooNew
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.tables.rocks import RocksStore

folder, key, value = json.load(sys.stdin)
store, said = RocksStore(Path(folder)), []
overlay = Overlay(ScheduleTable(MemoryStore()))
for refuse in (lambda: overlay.replay(bytes.fromhex(key), bytes.fromhex(value)), lambda: ScheduleTable(store)):
    try:
        refuse()
    except FormatTooNew as error:
        said.append(str(error))
store.close()
print(json.dumps(said))
"""

_REFUSE = """
import json, sys
from pathlib import Path
from light_scheduler.errors import FormatTooNew
from light_scheduler.tables import Overlay, ScheduleTable, layout
from light_scheduler.tables.rocks import RocksStore

folder, key, value = json.load(sys.stdin)
key, value = bytes.fromhex(key), bytes.fromhex(value)
store = RocksStore(Path(folder))
table, said = ScheduleTable(store), []
overlay = Overlay(table)
totals, queues = b"\\x04", b"\\x07"
looks = {totals: lambda: overlay.bulk_total(int.from_bytes(key[1:], "big")), queues: lambda: overlay.delayed()}
for refuse in (lambda: overlay.replay(key, value), looks[key[:1]]):
    try:
        refuse()
    except FormatTooNew as error:
        said.append(str(error))
overlay.apply(changelog_offset=2, complete_at=2)
assert store.get(layout.OTHERS + key) == value
store.close()
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Version:
    """The packages of an earlier version in a folder; `format` is that of its state, `settings` are their names."""

    folder: Path
    format: int
    settings: frozenset[str]

    @classmethod
    def unpack(cls, format: int, folder: Path) -> Version:
        """Unpack the version that writes a format into a folder."""
        with tarfile.open(ARCHIVES[format]) as archive:
            return cls._unpack(archive, folder)

    @classmethod
    def of_commit(cls, commit: str, folder: Path) -> Version:
        """Take the version of a commit from the git history; skip the test where that has no such commit."""
        if (git := shutil.which("git")) is None:
            pytest.skip(f"no git: the version of commit {commit} cannot be had")
        look = [git, "cat-file", "-e", f"{commit}^{{commit}}"]
        if subprocess.run(look, check=False, cwd=ROOT, capture_output=True).returncode:
            pytest.skip(f"the git history has no commit {commit}: a shallow clone, or no clone at all")
        with tarfile.open(fileobj=io.BytesIO(tar_of(commit, ROOT))) as archive:
            return cls._unpack(archive, folder)

    @classmethod
    def _unpack(cls, archive: tarfile.TarFile, folder: Path) -> Version:
        archive.extractall(folder, filter="data")
        answer = subprocess.run(
            [sys.executable, "-c", _LOOK],
            check=True,
            cwd=folder,
            env=os.environ | _variables(folder),
            capture_output=True,
            text=True,
        )
        found = json.loads(answer.stdout)
        assert Path(found["file"]).is_relative_to(folder), "the earlier packages are the ones that are imported"
        return cls(folder, found["format"], frozenset(found["settings"]))

    def mark_of(self, headers: Headers) -> str:
        """Return the name of the type that this version takes a record between lanes for."""
        said = json.dumps([(name, (value or b"").decode()) for name, value in headers])
        return self._run(_MARK, said).strip()

    def refuses(self, key: bytes, value: bytes, copy: Path) -> list[str]:
        """Return why this version refuses a bulk total, or a queue, in the changelog, and in a local copy that has it.

        Raises CalledProcessError if the copy does not have it as it was afterwards.
        """
        said: list[str] = json.loads(self._run(_REFUSE, json.dumps([str(copy), key.hex(), value.hex()])))
        return said

    def refuses_position(self, key: bytes, value: bytes, copy: Path) -> list[str]:
        """Return why this version refuses a position in the changelog, and a local copy that has it."""
        said: list[str] = json.loads(self._run(_REFUSE_POSITION, json.dumps([str(copy), key.hex(), value.hex()])))
        return said

    def _run(self, code: str, input: str = "") -> str:
        command, environment = [sys.executable, "-c", code], os.environ | _variables(self.folder)
        ran = subprocess.run(
            command, check=True, cwd=self.folder, env=environment, input=input, capture_output=True, text=True
        )
        return ran.stdout


class EarlierWorker(WorkerProcess):
    """A worker of an earlier version, with those of the settings that it knows."""

    def __init__(self, version: Version, current: WorkerProcess) -> None:
        """`current` is the worker of this version that is to replace it: both have one place, folder and name."""
        log = current.log.with_name(f"earlier-{current.log.name}")
        super().__init__(current.settings, log, variables=_variables(version.folder), folder=version.folder)
        self.version = version

    @property
    def environment(self) -> dict[str, str]:
        """What it is started with: a setting that it does not know would end it."""
        known = {f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in self.version.settings}
        ours = {name for name in worker_environment(self.settings, {}) if name not in known}
        return {name: value for name, value in super().environment.items() if name not in ours}


def earlier_worker(application: Application, version: Version, current: WorkerProcess) -> EarlierWorker:
    """Prepare the worker of an earlier version that a worker is to replace."""
    worker = EarlierWorker(version, current)
    application.workers.append(worker)
    return worker


def writes_this_format(worker: WorkerProcess) -> bool:
    """Return whether a worker's state has the format of this version."""
    return not isinstance(worker, EarlierWorker) or worker.version.format == FORMAT_VERSION


def _variables(folder: Path) -> dict[str, str]:
    """Return what has a Python process import the packages in a folder, not this version's."""
    return {"PYTHONPATH": str(folder)}
