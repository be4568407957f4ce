"""What `make audit` makes of what its tools say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts import audit
from scripts.audit import DONE, ELSEWHERE, FAILED, UNKNOWN, VULNERABLE, Answer, exit_code, judged

GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1", "3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (1)"}


@pytest.mark.parametrize(
    ("packages", "status", "text"),
    [
        ([GOOD, GOOD], DONE, "none known in 2 packages"),
        ([GOOD, BAD], FAILED, "1 known\nb 2: PYSEC-1, fixed in 2.1, 3"),
        ([SKIPPED, BAD], FAILED, "1 known\nb 2: PYSEC-1, fixed in 2.1, 3"),
        ([GOOD, SKIPPED], UNKNOWN, f"NOT CHECKED: no answer for 1 of 2 packages. {ELSEWHERE}"),
        ([], UNKNOWN, f"NOT CHECKED: no answer for 0 of 0 packages. {ELSEWHERE}"),
    ],
)
def test_a_package_that_the_database_does_not_know_is_not_taken_for_a_good_one(
    packages: list[dict[str, object]], status: int, text: str
) -> None:
    assert judged(packages) == (status, text)


@pytest.mark.parametrize(
    ("statuses", "accepted", "code"),
    [
        ([DONE, DONE], DONE, DONE),
        ([DONE, UNKNOWN, DONE], DONE, UNKNOWN),
        ([DONE, UNKNOWN, DONE], UNKNOWN, DONE),
        ([UNKNOWN, FAILED], DONE, FAILED),
        ([FAILED, UNKNOWN], UNKNOWN, FAILED),
    ],
)
def test_a_failure_counts_more_than_what_is_not_known(statuses: list[int], accepted: int, code: int) -> None:
    assert exit_code(statuses, accepted) == code


def database(monkeypatch: pytest.MonkeyPatch, *answers: list[dict[str, object]] | str) -> None:
    """Have pip-audit answer with these lists of packages, one after the other; text: it has none, and says so."""
    left = iter(answers)

    def tool(*words: str) -> subprocess.CompletedProcess[str]:
        packages = next(left)
        if isinstance(packages, str):
            return subprocess.CompletedProcess(words, 1, "", f"some\n{packages}\n")
        return subprocess.CompletedProcess(words, 0, json.dumps({"dependencies": packages}), "")

    monkeypatch.setattr(audit, "tool", tool)


@pytest.mark.parametrize(
    ("answers", "answer"),
    [
        ([[GOOD], [BAD]], Answer(DONE, "none known in 1 packages")),
        ([[GOOD, BAD]], Answer(FAILED, "1 known\nb 2: PYSEC-1, fixed in 2.1, 3")),
        (
            [[GOOD], [GOOD]],
            Answer(UNKNOWN, f"NOT CHECKED: the database has no advisories, not even of {VULNERABLE}. {ELSEWHERE}"),
        ),
        (
            ["no route to host"],
            Answer(UNKNOWN, f"NOT CHECKED: the advisory database cannot be reached: no route to host. {ELSEWHERE}"),
        ),
        (
            [[GOOD], "time-out"],
            Answer(UNKNOWN, f"NOT CHECKED: the advisory database cannot be reached: time-out. {ELSEWHERE}"),
        ),
    ],
)
def test_a_database_without_advisories_is_not_taken_for_one_without_findings(
    monkeypatch: pytest.MonkeyPatch, answers: list[list[dict[str, object]] | str], answer: Answer
) -> None:
    database(monkeypatch, *answers)
    assert audit.vulnerabilities() == answer


def check_jsonschema(name: str, option: str, schema: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    """Do what the tool of this name does: it is not in this environment."""
    assert (name, option) == ("check-jsonschema", "--schemafile")
    assert files
    validator = Draft202012Validator(json.loads(schema.read_text()))
    validator.check_schema(validator.schema, Draft202012Validator.FORMAT_CHECKER)
    faults = [fault.message for path in files for fault in validator.iter_errors(json.loads(path.read_text()))]
    return subprocess.CompletedProcess(name, 1 if faults else 0, "\n".join(faults), "")


def test_what_the_chart_renders_for_the_prometheus_operator_is_held_to_its_schemas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(audit, "tool", check_jsonschema)
    manifests = sorted(audit.MANIFESTS.glob("*.yaml"))
    kinds = "PrometheusRule and ServiceMonitor as the Prometheus operator takes them"
    assert audit.operator_kinds(manifests, "valid") == (DONE, f"valid; {kinds}")
    for rendered, wrong in (("endpoints:", "ends:"), ("alert:", "alarm:"), ("for: 2m", "for: soon")):
        text = (audit.MANIFESTS / "secured.yaml").read_text()
        assert rendered in text
        (tmp_path / "wrong.yaml").write_text(text.replace(rendered, wrong))
        answer = audit.operator_kinds([tmp_path / "wrong.yaml"], "valid")
        assert answer.status == FAILED
        assert wrong.removeprefix("for: ").rstrip(":") in answer.text


def test_a_kind_of_the_prometheus_operator_without_a_schema_is_named(tmp_path: Path) -> None:
    (tmp_path / "probe.yaml").write_text("apiVersion: monitoring.coreos.com/v1\nkind: Probe\n---\n")
    answer = audit.operator_kinds([tmp_path / "probe.yaml"], "valid")
    assert answer.status == FAILED
    assert answer.text.startswith("no schema of Probe: ")


@pytest.mark.parametrize(("unreachable", "code"), [("fail", UNKNOWN), ("warn", DONE)])
def test_what_was_not_checked_is_said_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], unreachable: str, code: int
) -> None:
    monkeypatch.setattr(audit, "make_environment", lambda *_: None)
    checks = {"vulnerabilities": lambda: Answer(UNKNOWN, "NOT CHECKED"), "chart": lambda: Answer(DONE, "valid")}
    monkeypatch.setattr(audit, "CHECKS", checks)
    monkeypatch.setattr(sys, "argv", ["audit.py", "--unreachable", unreachable])
    with pytest.raises(SystemExit) as ended:
        audit.main()
    assert ended.value.code == code
    assert capsys.readouterr().out.splitlines()[-1] == "WARNING: not checked: vulnerabilities. See above."
