"""`light-scheduler pipeline views`: SQL views of an archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from light_scheduler.cli.output import Output
from light_scheduler.settings import Settings

from .running import Run, job_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.job import Progress
    from light_scheduler.pipeline.views import ViewsSummary

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline views /data/archive
  light-scheduler pipeline views table:lake.archive --schema lake --create
"""


@click.command("views", epilog=_EXAMPLES)
@click.argument("archive")
@click.option("--schema", metavar="NAME", help="Catalog schema for the views. Default: the current one.")
@click.option("--by-tenant", is_flag=True, help="The archive was made with --by-tenant.")
@click.option("--create", is_flag=True, help="Create the views in Spark's catalog instead of printing them.")
@job_options(prints=True)
def command(
    settings: Settings,
    client: dict[str, str],  # noqa: ARG001 (an option of all jobs)
    run: Run,
    output: Output,
    archive: str,
    schema: str | None,
    by_tenant: bool,
    create: bool,
) -> None:
    """Print the SQL for the views schedules, firings and lateness over ARCHIVE, or create the views.

    ARCHIVE is the path of a table that `archive` wrote, or `table:NAME` for a table in Spark's catalog.
    """

    from light_scheduler.pipeline.views import ViewsOptions, main, statements

    options = ViewsOptions(archive, settings.topics.history, schema, by_tenant)
    if not create:
        made = list(statements(options._replace(archive=_absolute(archive))))
        if output.is_table:
            click.echo("".join(f"{statement};\n\n" for statement in made), nl=False)
        else:
            output.print({"statements": made})
        return

    def job(spark: SparkSession, progress: Progress) -> ViewsSummary:
        return main(spark, options, progress)

    run(job, volume=lambda summary: (len(summary.views), None), delta=True)


def _absolute(archive: str) -> str:
    """Return a path that is valid wherever the views are used."""
    return archive if ":" in archive else str(Path(archive).absolute())
