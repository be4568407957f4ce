"""Build etf1's own scheduler, and a producer with its client library, into build/etf1 for the tests that run them.

What is there already is left as it is. Their source is cloned from where it is published, or from another clone:
`python scripts/etf1.py /path/to/clone`. Go gets what it needs from its module proxy. What cannot be built is told of,
and no failure: its tests are skipped then.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.etf1 import BUILT, CLIENT, CLIENT_SOURCE, PROGRAM, find

SOURCE = "https://github.com/etf1/kafka-message-scheduler"
COMMIT = "7e86af40c3f84b371e6e18afa2139c65aaba7319"
"""The version that the test knows."""

CLONE_S = 60
BUILD_S = 1_200
"""The first build compiles all that it needs."""


def run(*command: str, folder: Path | None = None, timeout_s: float = BUILD_S) -> bool:
    """Run a command; return whether it went well."""
    try:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=timeout_s)  # nosec B603
    except (OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return False
    return True


def build(source: str) -> None:
    """Build what is not there from a repository, as any user. It brings librdkafka, which needs a C compiler."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "source")
        if not (
            run("git", "clone", "--quiet", source, str(folder), timeout_s=CLONE_S)
            and run("git", "checkout", "--quiet", COMMIT, folder=folder)
        ):
            return
        if find(PROGRAM) is None:
            run("go", "build", "-o", str(BUILT / PROGRAM), "./cmd/kafka", folder=folder)
        if find(CLIENT) is None:
            library = folder / "clientlib"
            producer = library / "producer"
            producer.mkdir()
            shutil.copy(CLIENT_SOURCE, producer / "main.go")
            run("go", "build", "-o", str(BUILT / CLIENT), "./producer", folder=library)


def main() -> None:
    programs = (PROGRAM, CLIENT)
    if None in map(find, programs):
        build(sys.argv[1] if len(sys.argv) > 1 else SOURCE)
    for program in programs:
        print(f"{program}: {find(program) or 'it cannot be built: its tests will be skipped.'}")


if __name__ == "__main__":
    main()
