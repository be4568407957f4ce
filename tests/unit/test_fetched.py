"""What `make` gets for the tests: whoever is killed meanwhile leaves nothing that passes for whole."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.pinned_jar import PinnedJar
from support.whole import whole

TESTS = Path(__file__).parents[1]
KILLED = """
import os, signal, sys
from pathlib import Path
from support.whole import whole

with whole(Path(sys.argv[1])) as made:
    made.write_bytes(b"half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_made_is_there_once_it_is_whole(tmp_path: Path) -> None:
    with whole(tmp_path / "folder" / "program") as made:
        made.write_bytes(b"all of it")
        assert not (tmp_path / "folder" / "program").exists()
    assert (tmp_path / "folder" / "program").read_bytes() == b"all of it"
    assert [each.name for each in (tmp_path / "folder").iterdir()] == ["program"]


def test_a_folder_takes_the_place_of_a_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "old").touch()
    with whole(tmp_path / "pages") as made:
        made.mkdir()
        (made / "new").touch()
    assert [each.name for each in (tmp_path / "pages").iterdir()] == ["new"]


@pytest.mark.parametrize("makes_part", [True, False])
def test_what_fails_leaves_what_was_there(tmp_path: Path, makes_part: bool) -> None:
    (tmp_path / "program").write_bytes(b"before")
    with pytest.raises(OSError, match="no space"), whole(tmp_path / "program") as made:  # noqa: PT012 - the context
        if makes_part:
            made.write_bytes(b"half of it")
        raise OSError("no space")
    with whole(tmp_path / "program"):
        """Nothing is made: the command that should have said so in its own words."""
    assert (tmp_path / "program").read_bytes() == b"before"


def test_who_is_killed_leaves_nothing_in_the_place(tmp_path: Path) -> None:
    place = tmp_path / "program"
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, place], check=False, env={"PYTHONPATH": str(TESTS)}, timeout=60
    )
    assert ended.returncode == -signal.SIGKILL
    assert not place.exists()


class Maven:
    """Maven's cache, and what a download puts there."""

    def __init__(self, cached: Path, content: bytes) -> None:
        self.cached, self.content = cached, content
        self.downloads = 0

    def resolved(self) -> Path:
        if not self.cached.exists():
            self.downloads += 1
            self.cached.write_bytes(self.content)
        return self.cached


@pytest.mark.parametrize("partial", ["in place", "cached"])
def test_a_part_of_a_jar_is_downloaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partial: str) -> None:
    jar = PinnedJar("group", "name", "1", hashlib.sha256(b"jar").hexdigest(), tmp_path / "build")
    maven = Maven(tmp_path / "cached.jar", b"jar")
    monkeypatch.setattr(PinnedJar, "_resolved", lambda _self: maven.resolved())
    part = jar.path if partial == "in place" else maven.cached
    part.parent.mkdir(exist_ok=True)
    part.write_bytes(b"ja")
    assert not jar.is_there
    jar.fetch()
    jar.fetch()
    assert (jar.is_there, maven.downloads) == (True, 1)


def test_another_jar_than_the_pinned_one_is_not_put_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = PinnedJar("group", "name", "1", hashlib.sha256(b"jar").hexdigest(), tmp_path / "build")
    maven = Maven(tmp_path / "cached.jar", b"another")
    monkeypatch.setattr(PinnedJar, "_resolved", lambda _self: maven.resolved())
    with pytest.raises(RuntimeError, match="not the jar that was pinned"):
        jar.fetch()
    assert not jar.path.exists()
