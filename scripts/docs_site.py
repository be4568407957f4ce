"""Hooks for MkDocs that add files outside docs/ to the site if a page links to them.

On GitHub a page in docs/ links to `../benchmarks/README.md`. The site has that file as `benchmarks/README.md`, beside
the pages of docs/, so links between them are rewritten. A link to an example that is a paragraph of its own is followed
by the example.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
BESIDES = ("benchmarks/README.md", "benchmarks/EXPERIMENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK = re.compile(r"(\]\()([^)#\s:]+)(?=[)#])")
_EXAMPLE = re.compile(r"^\[[^\]\n]+\]\(\.\./(examples/[^)\n]+)\)$", re.MULTILINE)
_LANGUAGES = {".go": "go", ".java": "java", ".mjs": "javascript", ".py": "python", ".sh": "sh"}
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, and every file that any page links to."""
    pages = [*(f"docs/{file.src_uri}" for file in files.documentation_pages()), *BESIDES]
    linked = {target for page in pages for target in _targets(page)}
    for path in dict.fromkeys((*BESIDES, *sorted(linked))):
        if not path.startswith("docs/") and path not in files.src_uris and (ROOT / path).is_file():
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Insert examples, and convert links within the repository to links within the site."""
    source = page.file.src_uri
    here = source if source in BESIDES else f"docs/{source}"

    def rewritten(match: re.Match[str]) -> str:
        target = _resolve(here, match[2]).removeprefix("docs/")
        return match[1] + posixpath.relpath(target, posixpath.dirname(source) or ".")

    parts = _CODE.split(_EXAMPLE.sub(_with_text, markdown))
    return "".join(part if part.startswith("```") else _LINK.sub(rewritten, part) for part in parts)


def _with_text(link: re.Match[str]) -> str:
    example = ROOT / link[1]
    return f"{link[0]}\n\n```{_LANGUAGES[example.suffix]}\n{example.read_text(encoding='utf-8')}```"


def _targets(page: str) -> list[str]:
    text = _CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return [_resolve(page, match[2]) for match in _LINK.finditer(text)]


def _resolve(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
