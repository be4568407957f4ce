"""Build Helm into build/helm for the tests of the chart, unless it exists. Uses Go and its module proxy.

If it cannot be built, it says so and succeeds; the tests that need it are then skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.helm import BUILT, VERSION, find
from support.whole import whole

MODULE = f"helm.sh/helm/v3/cmd/helm@{VERSION}"
BUILD_S = 1_200
"""The first build compiles all dependencies."""


def build() -> None:
    """Build it, as any user. Go caches compiled packages, so another clone gets it in seconds."""
    try:
        with whole(BUILT) as made:
            subprocess.run(  # nosec B603 # Go, if there is one
                [shutil.which("go") or "go", "install", MODULE],
                check=True,
                env={**os.environ, "GOBIN": str(made.parent)},
                timeout=BUILD_S,
            )
    except (OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)


def main() -> None:
    if not BUILT.exists():
        build()
    print(f"Helm: {find() or 'it cannot be built: the tests that need it will be skipped.'}")


if __name__ == "__main__":
    main()
