"""Jars: resolved from Maven coordinates, downloaded once per machine, and kept in jgo's cache.

Their content is pinned (see `pins`) and checked at every use.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from light_scheduler.errors import BrokerStartError

from .pins import PINS, read_pins, require_sum, sha256_of

KAFKA_VERSION = "4.3.1"


class Library(NamedTuple):
    """The jars of a library: name, Maven coordinates, and approximate size of the first download (for the progress
    bar)."""

    name: str
    coordinates: tuple[str, ...]
    download_bytes: int


KAFKA = Library(
    f"Kafka {KAFKA_VERSION}",
    (
        # kafka-clients is listed although kafka_2.13 depends on it: otherwise the resolver chooses an older version.
        f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
        f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}",
        "org.apache.logging.log4j:log4j-slf4j2-impl:2.25.2",
    ),
    45_200_000,
)

Advance = Callable[[str, int], None]
"""Called with the name of the file being downloaded and the number of bytes just received."""

_CHUNK_BYTES = 1 << 16


def kafka_jars() -> list[Path]:
    """Return the class path of Kafka; see `jars_of`."""
    return jars_of(KAFKA)


def jars_of(library: Library, pinned: Path = PINS) -> list[Path]:
    """Return the class path of a library with pinned jars. Missing jars are downloaded.

    A download shows a progress bar if standard error is a terminal. Raises BrokerStartError if the `broker` extra is
    not installed, a jar is missing and cannot be fetched, or a jar's content differs from its pin.
    """
    pins = read_pins(pinned)
    jars = resolved(library, pins)
    for jar in jars:
        environment, (_, repository) = jar.parent.parent, _cache_folders()
        advice = f"Delete {environment} and every {jar.name} below {repository}, and run the command again."
        require_sum(jar.name, sha256_of(jar), pins, advice)
    return jars


def resolved(library: Library, pins: Mapping[str, str] | None = None) -> list[Path]:
    """Return the class path of a library as `jars_of` does, but check jars only when they are downloaded, by `pins` if
    given."""
    jgo = _import_jgo()
    try:
        with _only_one_process(), _progress_bar(library) as advance:
            return _resolve(jgo, "+".join(library.coordinates), advance, pins)
    except BrokerStartError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # requests' errors are OSErrors, jgo's are RuntimeErrors
        raise BrokerStartError(
            f"the jars of {library.name} are not all on this machine and could not be downloaded "
            f"({_first_line(error)}). Connect to the internet (HTTPS_PROXY is honoured) and run the command again; "
            f"after one complete download no network is needed. Offline, copy {_cache_folders()} from a machine that "
            "has them, or use your own Kafka."
        ) from error


def _import_jgo() -> Any:
    try:
        import jgo
    except ImportError as error:
        raise BrokerStartError("the embedded broker needs an extra: pip install 'light-scheduler[broker]'") from error
    return jgo


def _resolve(jgo: Any, coordinates: str, advance: Advance, pins: Mapping[str, str] | None) -> list[Path]:
    resolver = _checked_resolver(advance, pins)
    environment = jgo.build(coordinates, resolver=resolver)
    # The lock file is written last. If it is missing, an earlier run was interrupted, which jgo would not notice.
    if not environment.lock_path.exists():
        environment = jgo.build(coordinates, resolver=resolver, update=True)
    return list(environment.all_jars)


def _checked_resolver(advance: Advance, pins: Mapping[str, str] | None) -> Any:
    """Return a jgo resolver that leaves no partial file behind, refuses a wrong checksum and reports its progress.

    Only jars are pinned. Other files, which say which jars exist, are checked against the checksum on their server.
    """
    import requests
    from jgo.maven import PythonResolver

    class CheckedResolver(PythonResolver):
        def download(self, artifact: Any) -> Path:
            target: Path = artifact.cached_path
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(target.name + ".part")
            path = artifact.component.path_prefix.as_posix()
            for repository in artifact.context.remote_repos.values():
                url = f"{repository}/{path}/{artifact.filename}"
                with requests.get(url, stream=True, timeout=artifact.context.timeout) as response:
                    if response.status_code != requests.codes.ok:
                        continue
                    damage, content = hashlib.sha1(usedforsecurity=False), hashlib.sha256()
                    with partial.open("wb") as file:
                        for chunk in response.iter_content(_CHUNK_BYTES):
                            file.write(chunk)
                            damage.update(chunk)
                            content.update(chunk)
                            advance(artifact.filename, len(chunk))
                try:
                    if pins is not None and target.suffix == ".jar":
                        require_sum(artifact.filename, content.hexdigest(), pins, "Try again, or ask who changed it.")
                    else:
                        _require_undamaged(artifact, url, damage.hexdigest())
                except BaseException:
                    partial.unlink()
                    raise
                partial.replace(target)
                return target
            raise RuntimeError(f"{artifact.filename} is in none of the repositories asked")

    return CheckedResolver()


def _require_undamaged(artifact: Any, url: str, sha1: str) -> None:
    import requests

    with requests.get(f"{url}.sha1", timeout=artifact.context.timeout) as checksum:
        checksum.raise_for_status()
        if checksum.text.split()[0] != sha1:
            raise RuntimeError(f"{artifact.filename} arrived damaged: its checksum is wrong")


@contextmanager
def _only_one_process() -> Iterator[None]:
    """Make test runs that start together wait for one download, instead of writing the same files."""
    folder, _ = _cache_folders()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "light-scheduler.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cache_folders() -> tuple[Path, Path]:
    from jgo.config import GlobalSettings

    settings = GlobalSettings.load()
    return Path(settings.cache_dir), Path(settings.repo_cache)


@contextmanager
def _progress_bar(library: Library) -> Iterator[Advance]:
    """Yield a function that draws a progress bar from the first downloaded byte on."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    progress = Progress(
        TextColumn(f"Downloading {library.name}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )
    task = progress.add_task("", total=library.download_bytes)
    started = False

    def advance(file: str, size: int) -> None:
        nonlocal started
        if not started:
            started = True
            if console.is_terminal:
                progress.start()
            else:
                console.print(f"Downloading {library.name} (about {library.download_bytes // 1_000_000} MB, once)")
        progress.update(task, advance=size, description=file)

    try:
        yield advance
    finally:
        progress.stop()


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
