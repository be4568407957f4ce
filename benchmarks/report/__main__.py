"""Writes the tables of benchmarks/README.md, and figures in sentences of other pages, from benchmarks/results.

python -m benchmarks.report            write them
python -m benchmarks.report --check    only check whether they are up to date: exit code 1 if not
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.kept.measurements import RESULTS
from benchmarks.report import page, sentences

ROOT = RESULTS.parents[1]
PAGE = "benchmarks/README.md"


def main() -> int:
    """Write or compare the pages. Return 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="Write nothing.")
    options = parser.parse_args()
    disagreeing = [name for name in (PAGE, *sentences.PAGES) if not _agrees(name)]
    for name in disagreeing:
        if options.check:
            print(f"{name} does not agree with the results: run `python -m benchmarks.report`", file=sys.stderr)
        else:
            (ROOT / name).write_text(_made(name), encoding="utf-8")
    return int(options.check and bool(disagreeing))


def _made(name: str) -> str:
    """Return the text of a page with current tables and figures."""
    text = _text(name)
    return page.filled(text, RESULTS) if name == PAGE else sentences.filled(name, text, RESULTS)


def _agrees(name: str) -> bool:
    return _made(name) == _text(name)


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
