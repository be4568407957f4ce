"""Build the distributions of a release: `scripts/release.py https://forge.example/team/light-scheduler`.

A package index shows the README without the repository. So only in the built tree, its links point to the files of the
release's tag, and the metadata contains the project's addresses. The last commit is built, to dist/.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELATIVE_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
BUILD = "from setuptools import build_meta; build_meta.build_{kind}({folder!r})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("repository", help="The address of the project's repository, as people open it.")
    parser.add_argument(
        "--files",
        default="{repository}/blob/v{version}/",
        help="Where a file of the release is shown; the default is GitHub's way. [%(default)s]",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="A folder. [%(default)s]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_of_what_is_committed(tree)
        address(tree, options.repository.rstrip("/"), options.files)
        options.output.mkdir(parents=True, exist_ok=True)
        for kind in ("sdist", "wheel"):
            build = BUILD.format(kind=kind, folder=str(options.output.resolve()))
            command = (sys.executable, "-c", build)
            subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)  # nosec B603 # our own tree


def copy_of_what_is_committed(folder: Path) -> None:
    """Write the tree of the last commit to a folder."""
    command = ("git", "archive", "HEAD")
    archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout  # nosec B603 # the user's git
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        tree.extractall(folder, filter="data")


def address(tree: Path, repository: str, files: str) -> None:
    """Insert the project's addresses in a tree. Exits with a message if the README links to a missing file."""
    project, readme = tree / "pyproject.toml", tree / "README.md"
    version = tomllib.loads(project.read_text())["project"]["version"]
    files = files.format(repository=repository, version=version)
    missing = [path for path, _ in RELATIVE_LINK.findall(readme.read_text()) if not (tree / path).exists()]
    if missing:
        sys.exit(f"README.md links to what is not in the repository: {', '.join(missing)}")
    readme.write_text(RELATIVE_LINK.sub(rf"]({files}\1\2)", readme.read_text()))
    urls = {
        "Source": repository,
        "Documentation": f"{files}docs/index.md",
        "Changelog": f"{files}CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    lines = ["", "[project.urls]", *(f'{name} = "{url}"' for name, url in urls.items()), ""]
    project.write_text(project.read_text() + "\n".join(lines))


if __name__ == "__main__":
    main()
