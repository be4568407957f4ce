"""What the doctor makes of what it is told."""

from __future__ import annotations

import pytest

from light_scheduler.cli.checks import check_copies


@pytest.mark.parametrize(
    ("nodes", "singles", "status", "named"),
    [
        (1, ["orders"], "ok", "one node has all"),
        (3, [], "ok", "every topic has more than one"),
        (3, ["orders"], "warn", "only one of orders:"),
        (3, list("abcde"), "warn", "only one of a, b, c, d, e:"),
        (3, list("abcdefg"), "warn", "only one of a, b, c, d, e and 2 more:"),
    ],
)
def test_single_copies_are_warned_of_where_there_are_several_nodes(
    nodes: int, singles: list[str], status: str, named: str
) -> None:
    check = check_copies(nodes, singles)
    assert check.status == status
    assert check.detail.startswith(named)
    assert (check.fix is None) == (status == "ok")
