"""Reports as pages: a single self-contained HTML file each, which needs no network."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyarrow import ArrowException
from pyarrow.fs import FileSystem

from light_scheduler.errors import JobError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, GOOD, BAD = "#1f2933", "#9aa5b1", "#2a78d6", "#c8372d"
"""Colours: text, lines, good, bad."""

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.lead { color: #52606d; margin-top: 0; }
img { max-width: 100%; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e4e7eb; vertical-align: top; }
td.number, th.number { text-align: right; }
.good { color: #1a7f37; font-weight: 600; } .bad { color: #c8372d; font-weight: 600; }
"""


class Section(NamedTuple):
    """A part of a page; `body` is HTML."""

    title: str
    body: str


def page(title: str, lead: str, sections: Iterable[Section]) -> str:
    """Return a whole page."""
    parts = "\n".join(f"<section><h2>{escape(title)}</h2>\n{body}</section>" for title, body in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f'<body><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>\n{parts}\n</body></html>\n'
    )


def write_page(path: str, text: str) -> None:
    """Write a page to a local path, or to a URL of a file system of Arrow: `s3a://`, `gs://`, `hdfs://`, ...

    Creates missing folders. Raises JobError if it cannot write there.
    """
    if "://" not in path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
        return
    try:
        files, place = FileSystem.from_uri(re.sub("^s3[an]://", "s3://", path))
        if files.type_name in ("local", "hdfs"):  # others have no folders
            files.create_dir(str(PurePosixPath(place).parent))
        with files.open_output_stream(place) as stream:
            stream.write(text.encode())
    except (OSError, ArrowException) as error:
        raise JobError(f"the report cannot be written to {path}: {error}") from error


def paragraph(text: str, mark: str = "") -> str:
    """Return a paragraph; `mark` is `good`, `bad` or empty."""
    return f'<p class="{escape(mark)}">{escape(text)}</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; columns of whole numbers are aligned to the right."""

    def cell(tag: str, value: Any) -> str:
        number = isinstance(value, int)
        text = f"{value:,}" if number else "" if value is None else str(value)
        mark = ' class="number"' if number else ""
        return f"<{tag}{mark}>{escape(text)}</{tag}>"

    body = "\n".join(f"<tr>{''.join(cell('td', value) for value in row)}</tr>" for row in rows)
    titles = "".join(cell("th", title) for title in head)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def plot(draw: Callable[[Axes], None], description: str, size: tuple[float, float] = (10, 3.2)) -> str:
    """Return a drawing as an image within the page. `description` is its alternative text; `size` is in inches."""
    from matplotlib.figure import Figure  # slow, and executors import modules that import this one

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    draw(axes)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=120)
    data = base64.b64encode(image.getvalue()).decode()
    return f'<img alt="{escape(description)}" src="data:image/png;base64,{data}">'


def utc(ms: int) -> datetime:
    """Return an instant (UTC epoch ms) for axes."""
    return datetime.fromtimestamp(ms / 1_000, UTC)
