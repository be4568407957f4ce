"""The origin of the figures: commits, interpreters, machines and commands."""

from __future__ import annotations

from benchmarks.kept.measurements import MEASUREMENTS
from benchmarks.report.markdown import link, number, table
from benchmarks.report.results import OTHER_COMMAND, Document, Results, commit_of, day_of

PACKAGES = ("kafka", "faust-streaming", "aiokafka", "confluent-kafka", "rocksdict", "msgspec")


def commits(results: Results) -> set[str]:
    """Return the commits of all results."""
    return {commit_of(document) for document in _documents(results).values()}


def origin(results: Results) -> str:
    """The commit, the interpreter, the packages and the machine."""
    documents, known = _documents(results), commits(results)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, document in documents.items():
        groups.setdefault(_described(document), []).append(name)
    if len(known) == 1:
        said = f"All results are of commit {known.pop()}."
    else:
        said = "The results are of several commits. Below each table are the commits of its results."
    rows = [[*described, ", ".join(map(link, names))] for described, names in groups.items()]
    return f"{said}\n\n{table(['commit', 'Python', 'packages', 'machine', 'results'], rows)}"


def _described(document: Document) -> tuple[str, ...]:
    versions, machine = document.get("versions", {}), document["machine"]
    build = versions.get("python_build", "build not recorded")
    python = f"{versions['python']}, {build}" if "python" in versions else "not recorded"
    packages = ", ".join(f"{name} {versions[name]}" for name in PACKAGES if name in versions) or "not recorded"
    memory = f"{machine['memory_bytes'] / 1e9:.0f} GB"
    place = f"{machine['cpu']}, {machine['cores']} cores, {memory}, {machine['system']} {machine['architecture']}"
    commit, day = commit_of(document), day_of(document)
    return commit if "commit" in versions or day is None else f"{commit}, measured on {day}", python, packages, place


def commands(results: Results) -> str:
    """The command of each result."""
    rows = []
    for each in MEASUREMENTS:
        shown = link(each.name) if results.document(each.name) else f"{each.name} (not measured)"
        if OTHER_COMMAND in results.remarks(each.name):
            shown += f" ({OTHER_COMMAND})"
        rows.append([shown, f"`{each.shown}`", number(each.minutes)])
    return table(["result", "command", "minutes"], rows)


def hours(_: Results) -> str:
    """The total duration."""
    minutes = sum(each.minutes for each in MEASUREMENTS)
    return f"All of them take about {number(minutes / 60, 1)} hours and up to 60 GB in the temporary folder."


def _documents(results: Results) -> dict[str, Document]:
    found = {each.name: results.document(each.name) for each in MEASUREMENTS}
    return {name: document for name, document in found.items() if document is not None}
