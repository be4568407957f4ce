"""What `make audit` makes of what its tools say."""

from __future__ import annotations

import pytest

from scripts.audit import DONE, ELSEWHERE, FAILED, UNKNOWN, exit_code, judged

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
