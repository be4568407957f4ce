"""What happens when Kafka is not on the machine."""

from __future__ import annotations

import builtins
import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.contestants import toolbox
from light_scheduler.errors import BrokerStartError
from light_scheduler.host import jars, pins
from light_scheduler.pipeline.delta_jars import DELTA

JAR = b"the bytes of a jar"
PINNED = {"thing-1.jar": hashlib.sha256(JAR).hexdigest()}


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without_jgo(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "jgo":
            raise ImportError(name)
        return importing(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_jgo)
    with pytest.raises(BrokerStartError, match=r"light-scheduler\[broker\]"):
        jars.kafka_jars()


def test_offline_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unused_address: str
) -> None:
    monkeypatch.setenv("JGO_CACHE_DIR", str(tmp_path / "jgo"))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, f"http://{unused_address}")
    with pytest.raises(BrokerStartError, match="Connect to the internet"):
        jars.kafka_jars()


def test_a_download_is_held_to_its_pin_and_reported(repository: dict[str, bytes], artifact: SimpleNamespace) -> None:
    repository["/group/thing-1.jar"] = JAR
    progress: list[tuple[str, int]] = []
    resolver = jars._checked_resolver(lambda file, size: progress.append((file, size)), PINNED)
    assert resolver.download(artifact).read_bytes() == JAR
    assert progress == [("thing-1.jar", len(JAR))]


@pytest.mark.parametrize(
    ("pinned", "message"), [(PINNED, "wrong checksum.*SHA-256"), ({}, r"not among the jars.*scripts/pin_jars\.py")]
)
def test_a_jar_that_its_server_vouches_for_but_is_not_the_pinned_one_is_refused_and_not_kept(
    repository: dict[str, bytes], artifact: SimpleNamespace, pinned: dict[str, str], message: str
) -> None:
    repository["/group/thing-1.jar"] = b"other bytes"
    repository["/group/thing-1.jar.sha1"] = hashlib.sha1(b"other bytes").hexdigest().encode()
    with pytest.raises(BrokerStartError, match=message):
        jars._checked_resolver(lambda file, size: None, pinned).download(artifact)
    assert list(artifact.cached_path.parent.iterdir()) == []


def test_what_is_not_pinned_is_held_to_the_checksum_of_its_server(
    repository: dict[str, bytes], artifact: SimpleNamespace
) -> None:
    artifact.filename, artifact.cached_path = "thing-1.pom", artifact.cached_path.with_suffix(".pom")
    repository["/group/thing-1.pom"] = b"the text of a pom"
    repository["/group/thing-1.pom.sha1"] = hashlib.sha1(b"the text of a pom").hexdigest().encode()
    assert jars._checked_resolver(lambda file, size: None, PINNED).download(artifact).exists()
    repository["/group/thing-1.pom.sha1"] = hashlib.sha1(b"another text").hexdigest().encode()
    with pytest.raises(RuntimeError, match="checksum"):
        jars._checked_resolver(lambda file, size: None, PINNED).download(artifact)


def test_a_jar_that_was_changed_in_the_cache_is_refused_with_what_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JGO_CACHE_DIR", str(tmp_path / "jgo"))
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    jar = tmp_path / "jgo" / "environment" / "jars" / "thing-1.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(JAR)
    monkeypatch.setattr(jars, "resolved", lambda library, pins: [jar])
    monkeypatch.setattr(jars, "read_pins", lambda file: PINNED)
    assert jars.kafka_jars() == [jar]
    jar.write_bytes(JAR + b"!")
    what_to_delete = rf"Delete {tmp_path}/jgo/environment and every thing-1\.jar below {tmp_path}/m2"
    with pytest.raises(BrokerStartError, match=rf"wrong checksum.*{what_to_delete}"):
        jars.kafka_jars()


@pytest.mark.parametrize(
    ("file", "libraries"),
    [
        pytest.param(pins.PINS, (jars.KAFKA, DELTA), id="of the package"),
        pytest.param(toolbox.PINS, toolbox.LIBRARIES, id="of the schedulers that are compared"),
    ],
)
def test_the_pins_name_every_jar_that_is_asked_for(file: Path, libraries: tuple[jars.Library, ...]) -> None:
    pinned = pins.read_pins(file)
    for library in libraries:
        for coordinates in library.coordinates:
            _, artifact, version = coordinates.split(":")
            assert re.fullmatch("[0-9a-f]{64}", pinned[f"{artifact}-{version}.jar"]), "run scripts/pin_jars.py"


def test_pins_are_read_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "thing-1.jar").write_bytes(JAR)
    (tmp_path / "pins").write_text(pins.written_pins([tmp_path / "thing-1.jar"]))
    assert pins.read_pins(tmp_path / "pins") == PINNED


def test_what_no_repository_has_is_an_error(repository: dict[str, bytes], artifact: SimpleNamespace) -> None:
    with pytest.raises(RuntimeError, match="none of the repositories"):
        jars._checked_resolver(lambda file, size: None, PINNED).download(artifact)


@pytest.fixture
def unused_address() -> str:
    from light_scheduler.host.ports import free_port

    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def repository_address(repository_server: tuple[str, dict[str, bytes]]) -> str:
    return repository_server[0]


@pytest.fixture
def repository(repository_server: tuple[str, dict[str, bytes]]) -> dict[str, bytes]:
    """The files of a repository: path -> content."""
    return repository_server[1]


@pytest.fixture
def repository_server() -> Iterator[tuple[str, dict[str, bytes]]]:
    files: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in files else 404)
            self.end_headers()
            self.wfile.write(files.get(self.path, b""))

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", files
        server.shutdown()
        thread.join()


@pytest.fixture
def artifact(tmp_path: Path, repository_address: str, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return SimpleNamespace(
        filename="thing-1.jar",
        cached_path=tmp_path / "cache" / "thing-1.jar",
        component=SimpleNamespace(path_prefix=PurePosixPath("group")),
        context=SimpleNamespace(remote_repos={"local": repository_address}, timeout=10),
    )
