"""What `make audit` makes of what its tools say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
