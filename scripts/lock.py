"""Pin every dependency with its hashes: requirements.lock for development, requirements-runtime.lock for workers.

Both hold what builds the package itself too, so that an installation needs no build isolation. They name neither a
registry nor a path. Run by `make lock`, which installs uv.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = {"requirements.lock": ("dev", "broker"), "requirements-runtime.lock": ("avro",)}


def lock(name: str, extras: tuple[str, ...], build: list[str], options: list[str]) -> None:
    """Write one lock file for every platform and every Python from 3.11 on."""
    subprocess.run(
        [
            *(sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "-"),
            *("--output-file", name, "--quiet", "--custom-compile-command", "make lock"),
            *("--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"),
            *(argument for extra in extras for argument in ("--extra", extra)),
            *options,
        ],
        cwd=ROOT,
        input="\n".join(build),
        text=True,
        check=True,
    )


def main() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    for name, extras in EXTRAS.items():
        lock(name, extras, build, sys.argv[1:])


if __name__ == "__main__":
    main()
