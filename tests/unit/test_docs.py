"""The documents say what is: headers, commands, options, metrics and links in them exist, and none is left out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.metrics import exposed_metrics

from light_scheduler.cli import COMMANDS, cli
from light_scheduler.kafka.fetching import UNREADABLE
from light_scheduler.model import DeadLetterCause, EventType, Outcome
from light_scheduler.web.api.operations import OPERATIONS
from light_scheduler.web.etf1.operations import ETF1_OPERATIONS
from light_scheduler.web.forms.problems import ProblemType
from light_scheduler.web.light4j.handlers import TaskParameters
from light_scheduler.web.light4j.operations import LIGHT4J_OPERATIONS
from light_scheduler.wire.fields import CONTROL_PREFIX, ON_FIRINGS, RULES
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import BULK_COUNT, BULK_REACH, FORWARDED_FROM
from light_scheduler.wire.probe import PROBE
from light_scheduler.wire.rate_lending import RATE_ASKED, RATE_LENT
from light_scheduler.wire.requester import REQUESTED_BY
from light_scheduler.wire.room_lending import ROOM_ASKED, ROOM_GIVEN

ROOT = Path(__file__).resolve().parents[2]
AT_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
DOCUMENTS = [*(ROOT / name for name in AT_THE_ROOT), *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
HEADER = re.compile(rf"(?<![\w-]){CONTROL_PREFIX}[a-z0-9-]*[a-z0-9]")
COMMAND = re.compile(r"(?<![\w/.-])light-scheduler ([a-z][a-z-]*)([^\n#|`]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
LINK = re.compile(r"\]\(([^)\s]+)\)")

FIRING_FIELDS = ON_FIRINGS | {"id", "tenant", "firing-id", "attempt"}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return what stands between a heading of the second level and the next one."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> str:
    """Return the first cells of all tables' rows."""
    return "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))


def code_of(text: str) -> Iterator[str]:
    """Yield code blocks, with continued lines joined, and code within lines."""
    for block in FENCE.findall(text):
        yield block.replace("\\\n", " ")
    yield from INLINE.findall(FENCE.sub("", text))


def headings(text: str) -> set[str]:
    """Return the anchors of all headings."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_types_of_problems_are_all_documented() -> None:
    table = section(read(ROOT / "docs" / "http.md"), "Errors")
    documented = {(status, type) for status, type in re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", table, re.MULTILINE)}
    assert {type for _, type in documented} == {type.rpartition(":")[2] for type in ProblemType}
    assert len(documented) == len(ProblemType)


class TestHeaders:
    native = read(ROOT / "docs" / "native.md")

    def test_the_table_of_command_headers_is_the_codecs(self) -> None:
        table = section(self.native, "Commands").partition("### What is rejected")[0]
        documented = set(HEADER.findall(first_cells(table)))
        assert documented == {CONTROL_PREFIX + field for field in RULES}

    def test_no_other_document_repeats_the_table(self) -> None:
        elsewhere = [path for path in DOCUMENTS if path.name != "native.md"]
        row = re.compile(rf"^\| `{CONTROL_PREFIX}", re.MULTILINE)
        assert [path.name for path in elsewhere if row.search(read(path))] == []

    def test_the_table_of_firing_headers_is_complete(self) -> None:
        documented = set(HEADER.findall(first_cells(section(self.native, "Firings"))))
        assert documented == {CONTROL_PREFIX + field for field in FIRING_FIELDS}

    @pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
    def test_no_document_names_a_header_that_nobody_knows(self, path: Path) -> None:
        known = (
            {CONTROL_PREFIX + field for field in RULES.keys() | FIRING_FIELDS}
            | {FORWARDED_FROM, BULK_COUNT, ADOPTED_FROM, EMPTIED, REQUESTED_BY, ROOM_ASKED, ROOM_GIVEN, PROBE}
            | {RATE_ASKED, RATE_LENT, BULK_REACH}
            | dict(UNREADABLE).keys()
        )
        assert set(HEADER.findall(read(path))) <= known

    @pytest.mark.parametrize(
        ("heading", "values"),
        [("Results", Outcome), ("History", EventType), ("Dead letters", DeadLetterCause)],
    )
    def test_every_outcome_event_and_cause_is_explained(self, heading: str, values: type[Outcome]) -> None:
        text = section(self.native, heading)
        assert [value.value for value in values if f"`{value.value}`" not in text] == []


class TestCommandLine:
    @pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
    def test_every_command_and_option_in_a_document_exists(self, path: Path) -> None:
        for code in code_of(read(path)):
            for name, arguments in COMMAND.findall(code):
                assert name in COMMANDS, code
                options = set(OPTION.findall(arguments)) - {"--help"}
                assert options <= options_of(name, arguments), code

    def test_every_command_has_a_section_and_a_row(self) -> None:
        text = read(ROOT / "docs" / "command-line.md")
        assert set(re.findall(r"`([a-z-]+)`", first_cells(text.partition("\n## ")[0]))) == COMMANDS.keys()
        assert set(re.findall(r"^## (.*)$", text, re.MULTILINE)) == COMMANDS.keys()


def options_of(name: str, arguments: str) -> set[str]:
    """Return the options of a command, or of the one of its own commands that the arguments begin with."""
    if not OPTION.findall(arguments.replace("--help", "")):
        return set()
    command = cli.get_command(click.Context(cli), name)
    if isinstance(command, click.Group):
        command = command.get_command(click.Context(command), arguments.split()[0])
    assert command is not None, arguments
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


def test_the_list_of_metrics_is_complete() -> None:
    documented = set(re.findall(r"`(light_scheduler_\w+)`", section(read(ROOT / "docs" / "operating.md"), "Watching")))
    assert documented == exposed_metrics()


def test_every_path_of_the_http_api_is_listed() -> None:
    listed = set(re.findall(r"^\| `(/[^`]*)`", read(ROOT / "docs" / "http.md"), re.MULTILINE))
    assert listed == {operation.path for operation in OPERATIONS}


def test_every_path_of_etf1_s_read_api_is_listed() -> None:
    listed = set(re.findall(r"`(/[^`]*)`", section(read(ROOT / "docs" / "dialects.md"), "etf1")))
    assert listed >= {operation.path for operation in ETF1_OPERATIONS}


def test_every_path_of_light_4j_s_endpoint_is_described() -> None:
    text = section(read(ROOT / "docs" / "dialects.md"), "light4j")
    assert all(f"{operation.method.upper()} {operation.path}`" in text for operation in LIGHT4J_OPERATIONS)
    assert set(TaskParameters.__struct_fields__) <= set(re.findall(r"`(\w+)`", text))


def test_the_readme_leads_to_the_index_and_the_index_to_every_document() -> None:
    assert "docs/index.md" in LINK.findall(read(ROOT / "README.md"))
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert set(LINK.findall(read(ROOT / "docs" / "index.md"))) == documents


def test_the_glossary_is_short_and_in_alphabetical_order() -> None:
    words = re.findall(r"^\| ([a-z][a-z ]*) \|", read(ROOT / "docs" / "glossary.md"), re.MULTILINE)
    assert 10 < len(words) <= 20
    assert words == sorted(words)


SOURCES = ("light_scheduler", "agents", "tables", "tests", "benchmarks", "scripts")


class TestArchitecture:
    """Of the page on architecture and the pages on its details."""

    pages = (ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs").glob("design-*.md")))
    text = "\n".join(FENCE.sub("", read(page)) for page in pages)

    def test_every_package_has_a_row(self) -> None:
        packages = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["setuptools"]["packages"]
        rows = " ".join(INLINE.findall(first_cells(section(self.text, "Modules"))))
        short = [package.removeprefix("light_scheduler.").replace(".", "/") for package in packages]
        assert [package for package in short if not re.search(rf"(?<!\w){package}(?!\w)", rows)] == []

    def test_every_module_outside_of_packages_has_a_row(self) -> None:
        modules = {path.stem for path in (ROOT / "light_scheduler").glob("*.py")} - {"__init__"}
        rows = INLINE.findall(first_cells(section(self.text, "Modules")))
        assert modules <= {name.rpartition("/")[2].removesuffix(".py") for name in rows}

    def test_every_module_of_the_engine_has_a_row(self) -> None:
        modules = {path.stem for path in (ROOT / "light_scheduler" / "engine").glob("*.py")} - {"__init__"}
        assert set(re.findall(r"^\| `(\w+)` \|", section(self.text, "The engine"), re.MULTILINE)) == modules

    def test_every_file_that_it_names_exists(self) -> None:
        files = [f"/{path.relative_to(ROOT)}" for folder in SOURCES for path in (ROOT / folder).rglob("*.*")]
        named = {name for name in INLINE.findall(self.text) if re.fullmatch(r"[\w./-]+\.(py|json)", name)}
        assert named
        assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files)] == []

    def test_every_class_that_it_names_is_in_the_code(self) -> None:
        code = "\n".join(read(path) for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
        named = {name for names in INLINE.findall(self.text) for name in re.findall(r"\b[A-Z][a-z]+\w*\b", names)}
        assert named
        assert [name for name in sorted(named) if not re.search(rf"\b{name}\b", code)] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_within_the_project_leads_somewhere(path: Path) -> None:
    for link in LINK.findall(FENCE.sub("", read(path))):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not anchor or anchor in headings(read(target)), link


def test_every_example_is_on_its_page() -> None:
    examples = [path for path in (ROOT / "examples").glob("*/*.*") if path.suffix != ".pyc"]
    linked = LINK.findall(read(ROOT / "docs" / "examples.md"))
    assert [path.name for path in examples if f"../{path.relative_to(ROOT)}" not in linked] == []
