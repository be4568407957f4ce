"""Repeats the measurements in benchmarks/results, one after the other, so that all figures are of one commit.

    python -m benchmarks.kept                   all that are not of this commit yet: more than four hours
    python -m benchmarks.kept ingest burst      these
    python -m benchmarks.kept --again           all of them
    python -m benchmarks.kept --list            only list the commit of each result

All need 60 GB in the temporary folder. It measures the tree that it runs in, even if another version is installed, so a
worktree at a commit is fine. Each command begins when the machine is idle, or after 5 minutes. A result is replaced
only if its command succeeds, and contains the command. While measured files have uncommitted changes, nothing counts as
measured; tests, documents, results and their pages may change in between.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.kept.idle import wait_until_idle
from benchmarks.kept.measurements import MEASUREMENTS, Measurement
from light_scheduler.bench.machine import versions
from light_scheduler.clock import SystemClock

ROOT = Path(__file__).parents[2]
KNOWN = {measurement.name: measurement for measurement in MEASUREMENTS}


def main() -> int:
    """Run the requested measurements. Return 1 if any command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"Of {', '.join(KNOWN)}; none: all.")
    parser.add_argument("--again", action="store_true", help="Also measure what is of this commit.")
    parser.add_argument("--list", action="store_true", help="Measure nothing, and list the results.")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in KNOWN]:
        parser.error(f"there is no command for {', '.join(unknown)}; known: {', '.join(KNOWN)}")
    asked = [KNOWN[name] for name in options.names or KNOWN]
    current = versions().get("commit")
    to_measure = [each for each in asked if options.again or not is_of(each.file, current)]
    if options.list:
        show(asked, to_measure)
        return 0
    failed = [each.name for each in to_measure if not measured_when_idle(each)]
    if failed:
        print(f"failed, and left as they were: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def is_of(file: Path, commit: str | None) -> bool:
    """Return whether a result was measured at a commit, with no file changed."""
    return commit is not None and not commit.endswith("-dirty") and commit_of(file) == commit


def commit_of(file: Path) -> str | None:
    """Return the commit in a result; None if it has none, or does not exist."""
    if not file.exists():
        return None
    commit: str | None = json.loads(file.read_text(encoding="utf-8")).get("versions", {}).get("commit")
    return commit


def show(asked: Iterable[Measurement], to_measure: list[Measurement]) -> None:
    """Print each result with its commit, and the duration of the outstanding measurements."""
    for each in asked:
        what = "to measure" if each in to_measure else "measured"
        commit = commit_of(each.file) or ("not recorded" if each.file.exists() else "not measured")
        print(f"{each.name:<24} {commit:<20} {what:<11} {each.minutes:>4.0f} min")
    print(f"to measure: {len(to_measure)} results, about {sum(each.minutes for each in to_measure):.0f} min")


def measured_when_idle(measurement: Measurement) -> bool:
    """Wait for an idle machine, then measure."""
    wait_until_idle()
    return measured(measurement, measurement.file)


def measured(measurement: Measurement, file: Path) -> bool:
    """Run a command and store its result in a file. Return whether it succeeded."""
    at = SystemClock().now()
    begun, written = time.monotonic(), file.with_suffix(".new")
    command = measurement.command.format(result=written)
    print(f"{measurement.name}, about {measurement.minutes:.0f} min: {command}", file=sys.stderr)
    writes_itself = command != measurement.command
    with Path(os.devnull if writes_itself else written).open("w", encoding="utf-8") as output:
        done = subprocess.run(command.split(), check=False, cwd=ROOT, stdout=output, env=environment())
    is_done = done.returncode == 0
    if is_done:
        document = {**json.loads(written.read_text(encoding="utf-8")), "at": at, "command": measurement.shown}
        written.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        written.replace(file)
    written.unlink(missing_ok=True)
    print(
        f"{measurement.name}: {'done' if is_done else 'FAILED'} after {time.monotonic() - begun:.0f} s", file=sys.stderr
    )
    return is_done


def environment() -> dict[str, str]:
    """Return an environment in which this interpreter runs commands of this tree."""
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    packages = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PATH": programs, "PYTHONPATH": packages}


if __name__ == "__main__":
    sys.exit(main())
