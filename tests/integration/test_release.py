"""What a package index shows of a release."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://forge.example/team/light-scheduler"
LINK = re.compile(r"\]\(([^)\s]+)\)")

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "release.py", REPOSITORY, "--output", folder],
        check=True,
        capture_output=True,
    )
    return folder


def metadata_of_wheel(folder: Path) -> Message:
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(wheel.read(name))


def metadata_of_source(folder: Path) -> Message:
    with tarfile.open(next(folder.glob("*.tar.gz"))) as source:
        name = next(name for name in source.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        file = source.extractfile(name)
        assert file is not None
        return message_from_bytes(file.read())


@pytest.mark.parametrize("metadata_of", [metadata_of_wheel, metadata_of_source])
@pytest.mark.soak
def test_a_release_names_the_project_s_addresses_and_its_readme_has_links_that_work_anywhere(
    built: Path, metadata_of: object
) -> None:
    assert callable(metadata_of)
    metadata = metadata_of(built)
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    files = f"{REPOSITORY}/blob/v{metadata['Version']}/"

    assert urls == {
        "Source": REPOSITORY,
        "Documentation": f"{files}docs/index.md",
        "Changelog": f"{files}CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    }
    links = LINK.findall(str(metadata.get_payload()))
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    ours = [link.removeprefix(files).split("#")[0] for link in links if link.startswith(files)]
    assert len(ours) > 10
    assert [path for path in ours if not (ROOT / path).exists()] == []


def test_a_release_is_refused_if_the_readme_links_to_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1"\n')
    (tmp_path / "README.md").write_text("[here](docs/missing.md)")
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from release import address; address(Path(sys.argv[1]), 'https://f', 'https://f/')",
            tmp_path,
        ],
        cwd=ROOT / "scripts",
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, "docs/missing.md" in ran.stderr) == (1, True)
