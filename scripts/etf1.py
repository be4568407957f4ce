"""Build etf1's own scheduler, a producer with its client library, and its admin into build/etf1, for tests.

Existing files are kept. The sources are cloned from their public repositories, or from other clones: `python
scripts/etf1.py /path/to/scheduler /path/to/admin`. Go downloads its dependencies from its module proxy. What cannot be
built is reported, but is not a failure; its tests are then skipped. The admin's web pages need no Go.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.etf1 import ADMIN, BUILT, CLIENT, CLIENT_SOURCE, PAGES, PROGRAM, find
from support.whole import whole

SOURCE = "https://github.com/etf1/kafka-message-scheduler"
COMMIT = "7e86af40c3f84b371e6e18afa2139c65aaba7319"
ADMIN_SOURCE = "https://github.com/etf1/kafka-message-scheduler-admin"
ADMIN_COMMIT = "e9bdf6e8de85729850c7bb5121ef0f801700b19c"
"""The versions that the tests expect."""

ADMIN_NEEDS = "github.com/etf1/kafka-message-scheduler"
NEEDED_COMMIT = "492e50022b2a4bcfa5bf51e20c06c9992c53e30d"
"""A module of the admin in a version that no module proxy has; the scheduler's repository has the next ones."""

KAFKA_CLIENT = "github.com/confluentinc/confluent-kafka-go@v1.9.2"
"""The admin's own version is an earlier 1.x, which cannot read from Kafka 4."""

CLONE_S = 60
BUILD_S = 1_200
"""The first build compiles all dependencies."""


def run(*command: str, folder: Path | None = None, timeout_s: float = BUILD_S) -> bool:
    """Run a command. Return whether it succeeded."""
    try:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=timeout_s)  # nosec B603
    except (OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return False
    return True


@contextmanager
def cloned(source: str, commit: str) -> Iterator[Path | None]:
    """Yield the folder of a clone, readable by any user; None if cloning fails."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "source")
        is_there = run("git", "clone", "--quiet", source, str(folder), timeout_s=CLONE_S)
        yield folder if is_there and run("git", "checkout", "--quiet", commit, folder=folder) else None


def build(program: str, package: str, folder: Path, *options: str) -> None:
    """Build a Go package as a program."""
    with whole(BUILT / program) as made:
        run("go", "build", *options, "-o", str(made), package, folder=folder)


def build_scheduler(folder: Path) -> None:
    """Build missing programs of the scheduler's repository. It includes librdkafka, which needs a C compiler."""
    if find(PROGRAM) is None:
        build(PROGRAM, "./cmd/kafka", folder)
    if find(CLIENT) is None:
        library = folder / "clientlib"
        producer = library / "producer"
        producer.mkdir()
        shutil.copy(CLIENT_SOURCE, producer / "main.go")
        build(CLIENT, "./producer", library)


def build_admin(folder: Path, source: str) -> None:
    """Build missing programs of the admin's repository, which contains the web pages ready to serve."""
    if not PAGES.is_dir():
        with whole(PAGES) as made:
            shutil.copytree(folder / "client" / "build", made)
    if find(ADMIN) is not None:
        return
    server = folder / "server"
    with cloned(source, NEEDED_COMMIT) as needed:
        if (
            needed is not None
            and run("go", "mod", "edit", "-replace", f"{ADMIN_NEEDS}={needed}", folder=server)
            and run("go", "get", KAFKA_CLIENT, folder=server)
        ):
            build(ADMIN, "./cmd/kafka", server, "-mod=mod")


def main() -> None:
    given = dict(enumerate(sys.argv[1:]))
    source, admin_source = given.get(0, SOURCE), given.get(1, ADMIN_SOURCE)
    if None in map(find, (PROGRAM, CLIENT)):
        with cloned(source, COMMIT) as folder:
            if folder is not None:
                build_scheduler(folder)
    if find(ADMIN) is None or not PAGES.is_dir():
        with cloned(admin_source, ADMIN_COMMIT) as folder:
            if folder is not None:
                build_admin(folder, source)
    for program in (PROGRAM, CLIENT, ADMIN):
        print(f"{program}: {find(program) or 'it cannot be built: its tests will be skipped.'}")
    print(f"The admin's pages: {PAGES if PAGES.is_dir() else 'they cannot be had: their tests will be skipped.'}")


if __name__ == "__main__":
    main()
