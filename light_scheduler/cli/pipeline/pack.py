"""`light-scheduler pipeline pack`: packs this package for executors into one file."""

from __future__ import annotations

from pathlib import Path

import click

from light_scheduler.cli.output import Output, output_option
from light_scheduler.cli.verbosity import note

_EXAMPLES = """\b
Examples:
  light-scheduler pipeline pack environment.pex
"""


@click.command("pack", epilog=_EXAMPLES)
@click.argument("output_file", metavar="FILE", type=click.Path(dir_okay=False, writable=True, path_type=Path))
@output_option()
def command(output_file: Path, output: Output) -> None:
    """Pack this package and its dependencies into FILE, a PEX that Spark's executors run as their Python.

    Executors need a Python of the same version and a system like this one, but no packages. Packing takes minutes.
    """

    from light_scheduler.pipeline.packing import pack

    if output.is_table:
        note("Packing this environment")
    packed = pack(output_file)
    if output.is_table:
        click.echo(f"{packed.path} has {packed.bytes:,} bytes, and needs {packed.python} on the executors")
    else:
        output.print({"path": str(packed.path), "bytes": packed.bytes, "python": packed.python})
