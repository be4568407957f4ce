"""SQL of the views over an archive."""

from __future__ import annotations

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.views import VIEWS, ViewsOptions, statements


def test_each_view_is_a_statement_that_describes_its_columns() -> None:
    made = list(statements(ViewsOptions("/data/archive", "orders-history", "lake")))
    assert len(made) == len(VIEWS)
    for (name, view), statement in zip(VIEWS.items(), made, strict=True):
        assert statement.startswith(f"CREATE OR REPLACE VIEW lake.{name} (\n")
        assert "FROM delta.`/data/archive`\n    WHERE topic = 'orders-history'" in statement
        assert all(f"  {column} COMMENT '{text}'" in statement for column, text in view.columns.items())
        assert "{" not in statement


def test_an_archive_can_be_a_table_of_the_catalog() -> None:
    assert "FROM main.lake.archive\n" in next(statements(ViewsOptions("table:main.lake.archive", "history")))


def test_a_path_cannot_leave_its_quotes() -> None:
    assert "FROM delta.`/a``b`\n" in next(statements(ViewsOptions("/a`b", "history")))


@pytest.mark.parametrize("name", ["", "lake archive", "lake.archive; DROP TABLE x", "lake..archive", "a/b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    for options in (ViewsOptions(f"table:{name}", "history"), ViewsOptions("/data", "history", schema=name)):
        with pytest.raises(JobError, match="is not a name in a catalog"):
            list(statements(options))
