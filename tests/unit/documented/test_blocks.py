"""Every code block of the documents is known to a test, and what none can run here is checked by what it names."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from dataclasses import fields
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.documented import EVERYWHERE, PAGES, TAKEN
from support.metrics import exposed_metrics
from support.snippets import Snippet, snippets

from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings
from scripts.audit import CHECKS, KUBERNETES
from scripts.render_chart import CHART, MANIFESTS

ROOT = Path(__file__).resolve().parents[3]
DEPLOYMENT = ROOT / "docs" / "deployment.md"
METRIC = re.compile(r"\blight_scheduler_\w+")
VARIABLE = re.compile(rf"\b{ENVIRONMENT_PREFIX}([A-Z_]+)")


def blocks(page: str, language: str) -> list[str]:
    return [snippet.text for snippet in snippets(ROOT / page) if snippet.language == language]


def manifest(kind: str) -> dict[str, Any]:
    """Return a recorded manifest of the chart, for a release `scheduler` in the namespace `prod`."""
    documents = yaml.safe_load_all((MANIFESTS / "secured.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = next(document for document in documents if document and document["kind"] == kind)
    return found


class TestEveryBlock:
    @staticmethod
    def is_output(snippet: Snippet, before: Snippet | None) -> bool:
        return snippet.language == "" and before is not None and before.language == "sh" and before.shown is not None

    @pytest.mark.parametrize("page", PAGES)
    def test_is_known_to_a_test(self, page: str) -> None:
        known = {language for taken in TAKEN if page in taken.pages for language in taken.languages}
        before = None
        for snippet in snippets(ROOT / page):
            assert snippet.language in known, f"no test of TAKEN (tests/support/documented.py) takes:\n{snippet.text}"
            assert snippet.language or self.is_output(snippet, before), f"has to name its language:\n{snippet.text}"
            before = snippet

    @pytest.mark.parametrize("page", PAGES)
    def test_is_found(self, page: str) -> None:
        """A fence that is not understood would hide its block from all tests."""
        fences = re.findall(r"^ *```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(snippets(ROOT / page)))

    def test_is_where_its_test_looks_for_it(self) -> None:
        for taken in TAKEN:
            assert (ROOT / taken.test).is_file()
            for page in taken.pages if len(taken.pages) < len(PAGES) else ():
                assert {snippet.language for snippet in snippets(ROOT / page)} & set(taken.languages), page

    @pytest.mark.parametrize("page", PAGES)
    def test_of_a_shell_is_one_for_bash(self, page: str) -> None:
        shell = "\n".join(blocks(page, "sh"))
        ran = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")

    @pytest.mark.parametrize("page", PAGES)
    def test_of_a_language_that_is_read_everywhere_can_be_read(self, page: str, tmp_path: Path) -> None:
        readers: dict[str, Callable[[str], Any]] = {
            "json": json.loads,
            "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
            "yaml": yaml.safe_load,
            "toml": partial(_settings_of, tmp_path / "light-scheduler.toml"),
            "ini": _sections_of,
        }
        assert set(readers) == set(EVERYWHERE)
        for snippet in snippets(ROOT / page):
            if snippet.language in readers:
                readers[snippet.language](snippet.text)

    @pytest.mark.parametrize("page", PAGES)
    def test_names_metrics_and_settings_that_exist(self, page: str) -> None:
        metrics = exposed_metrics()
        for snippet in snippets(ROOT / page):
            assert set(METRIC.findall(snippet.text)) <= metrics
            assert {name.lower() for name in VARIABLE.findall(snippet.text)} <= {each.name for each in fields(Settings)}


def _settings_of(file: Path, text: str) -> None:
    """Load a settings file, save for what it says of files of another machine."""
    assert tomllib.loads(text)
    file.write_text(text, encoding="utf-8")
    load_settings(environment={}, file=file)


def _sections_of(text: str) -> None:
    """Read a unit of systemd, whose options may be given more than once."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    assert parser.sections()


def documented_values() -> dict[str, Any]:
    values, _ = (yaml.safe_load(block) for block in blocks("docs/deployment.md", "yaml"))
    assert isinstance(values, dict)
    return values


def unknown_values(values: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of values that Helm would refuse."""
    for name, value in values.items():
        of_name = schema["properties"].get(name)
        if of_name is None:
            yield name
        elif "properties" in of_name:
            yield from unknown_values(value, of_name)


class TestDeployment:
    def test_the_values_are_those_of_the_chart_and_name_settings(self) -> None:
        values = documented_values()
        schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
        assert list(unknown_values(values, schema)) == []
        known = {setting.name for setting in fields(Settings)}
        assert set(values["settings"]) | set(values["kafka"]["secretFiles"]) <= known

    def test_the_certificate_names_the_service_and_the_address_of_each_worker(self) -> None:
        _, certificate = (yaml.safe_load(block) for block in blocks("docs/deployment.md", "yaml"))
        spec = certificate["spec"]
        container = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
        given = {each["name"]: each.get("value", "scheduler-0") for each in container["env"]}
        address = given["LIGHT_SCHEDULER_WEB_HOST"].replace("$(LIGHT_SCHEDULER_INSTANCE_ID)", "scheduler-0")
        for name in (address, "scheduler-light-scheduler.prod.svc"):
            assert any(fnmatch(name, pattern) for pattern in spec["dnsNames"]), name

    def test_the_audit_prints_what_is_shown(self) -> None:
        (shown,) = [snippet.shown for snippet in snippets(DEPLOYMENT) if snippet.text == "make audit\n"]
        assert shown is not None
        lines = {line[:17].strip(): line[18:] for line in shown.splitlines()}
        assert list(lines) == list(CHECKS)
        lock = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8")
        packages = re.findall(r"^[a-z0-9.-]+==(?!.*win32)", lock, re.MULTILINE)
        assert lines["vulnerabilities"] == f"none known in {len(packages)} packages"
        assert lines["chart"] == (
            f"valid in Kubernetes {' and '.join(KUBERNETES)}; "
            "PrometheusRule and ServiceMonitor as the Prometheus operator takes them"
        )
