"""What the documentation site needs besides its pages. MkDocs calls these hooks; see mkdocs.yml.

- Files of the repository that a page links to (`../examples/...`) come along, so the links work on the site too.
- The examples come along as examples.zip, for who has the package and this site but no checkout. Pages whose code
  names them link to it.
- The example notebooks are pages, with what they showed when scripts/run_notebooks.py ran them.
- The reference of the command line is what `--help` prints; each name has a page, see docs_reference.py.
- A page that would load anything from elsewhere ends the build.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import json
import os
import posixpath
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from scripts import docs_reference

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)")
COMMANDS = "<!-- The site puts each command's --help here. -->"
NAMES = "reference/names.md"
REFERENCE: list[str] = []  # the pages that name what has a page of its own
PAGES: list[str] = []  # and those pages
NOTEBOOKS = ROOT / "examples" / "notebooks"
EXAMPLES = "examples.zip"
BLOCK = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]* src="?(?:https?:)?//|<link[^>]* rel="?(?:stylesheet|preconnect)"?[^>]*//"""
)

# What people search for, and the page that they then want first; scripts/docs_search.py asks the site.
SEARCHED = {
    "index.md": ["getting started", "install"],
    "timers.md": ["timeout"],
    "virtual-time.md": ["pytest", "sleep", "retry"],
    "broker.md": ["kafka", "stalled replica", "REQUEST_TIMED_OUT"],
    "broker-groups.md": ["rebalance", "session", "max.poll.interval.ms", "time-out of a consumer"],
    "broker-transactions.md": ["transaction", "aborted", "exactly once"],
    "pipeline.md": ["who waited"],
    "questions.md": ["SLA", "heartbeat", "late order", "late orders"],
    "resolve.md": ["expired orders"],
    "lab.md": ["paper", "literature"],
}


def _outside(page: str, link: str) -> str | None:
    """The path from the repository's root of what a page of docs/ links to, where that is not below docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith("docs/") else path


def on_files(files: Files, config: Any) -> Files:
    """Add the examples, the notebooks as pages, and the linked files."""
    files.append(File.generated(config, EXAMPLES, content=_examples(), inclusion=InclusionLevel.NOT_IN_NAV))
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        markdown, pictures = notebook_page(json.loads(notebook.read_text(encoding="utf-8")), notebook.stem)
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=markdown))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    pages = list(files.documentation_pages())
    REFERENCE[:] = [page.src_uri for page in pages if docs_reference.NAMED.search(page.content_string)]
    PAGES.clear()
    for area in REFERENCE:
        for name, text in docs_reference.pages((ROOT / "docs" / area).read_text(), Path(area).stem):
            files.append(File.generated(config, f"reference/{name}", content=text, inclusion=InclusionLevel.NOT_IN_NAV))
            PAGES.append(name)
    found = (_outside(page.src_uri, link) for page in pages for link in LINK.findall(page.content_string))
    for path in sorted({path for path in found if path is not None}):
        if not (ROOT / path).is_file():
            raise PluginError(f"a page links to {path}, which is no file of the repository")
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path), inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def _examples() -> bytes:
    """The folder `examples` as a zip file, but for what is made from it."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted((ROOT / "examples").rglob("*")):
            if path.is_file() and not {"__pycache__", "node_modules", "target"}.intersection(path.parts):
                packed.write(path, path.relative_to(ROOT))
    return written.getvalue()


def notebook_page(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, with what its cells showed, and its pictures by name."""
    parts, pictures = [], dict[str, bytes]()
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            shown = {kind: "".join(data) for kind, data in output.get("data", {}).items()}
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            elif "image/png" in shown:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(shown["image/png"])
                parts.append(f"![{html.escape(shown['text/plain'].partition(chr(10))[0])}]({picture})")
            elif "<table" in shown.get("text/html", ""):  # a frame of pandas, without its own style
                parts.append(
                    re.sub(
                        r'<style.*?</style>|\n *| border="1"| class="dataframe"',
                        "",
                        shown["text/html"],
                        flags=re.DOTALL,
                    )
                )
            else:
                parts.append(f"```text\n{shown['text/plain'].rstrip()}\n```")
    path = f"examples/notebooks/{name}.ipynb"
    file = f"[Download this notebook](../../{path}), or open it in a checkout: `{path}`."
    title, *rest = parts
    heading, _, begin = title.partition("\n")
    return "\n\n".join([heading, file, begin.strip(), *rest]) + "\n", pictures


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at the files that came along, and write the reference of the command line."""
    here = page.file.src_uri
    if here in SEARCHED:
        page.meta["tags"] = SEARCHED[here]  # the site's search finds a page by its tags first
    if here.startswith("reference/"):
        page.meta["search"] = {"boost": 0.5}  # guides come before the reference, but for a name of its own

    def rewritten(link: re.Match[str]) -> str:
        path = _outside(here, link[0])
        if path is not None and path.endswith(".ipynb") and not here.startswith("notebooks/"):
            path = f"notebooks/{posixpath.basename(path).removesuffix('.ipynb')}.md"
        return link[0] if path is None else posixpath.relpath(path, posixpath.dirname(here) or ".")

    if any("examples/" in block for block in BLOCK.findall(markdown)):
        title, below = markdown.split("\n", 1)
        link = posixpath.relpath(EXAMPLES, posixpath.dirname(here) or ".")
        said = f"The folder `examples/` is in [examples.zip]({link}): unpack it where you work."
        markdown = f"{title}\n\n*{said}*\n{below}"
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, "\n\n".join(_commands()))
    if here in REFERENCE:
        markdown = docs_reference.overview(markdown)
    elif here == NAMES:
        markdown = docs_reference.linked_names(markdown, set(PAGES))
    elif here == "index.md":
        markdown = markdown.replace(f"\n{EXAMPLES} ", f"\n[{EXAMPLES}]({EXAMPLES}) ")  # there is none in a checkout
    return LINK.sub(rewritten, markdown)


def _commands() -> Iterator[str]:
    """A section for each command: its help."""
    os.environ |= {"ABEYANT_PURE": "1", "COLUMNS": "90"}  # run from source, whatever is compiled
    sys.path.insert(0, str(ROOT / "src"))
    from abeyant.cli import _parser

    parsers = [_parser()]
    while parsers:
        parser = parsers.pop(0)
        yield f"## {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```"
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers = [*dict.fromkeys(action.choices.values()), *parsers]


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse what comes from elsewhere."""
    found = LOADED.search(output)
    if found is not None:
        raise PluginError(f"{page.file.src_uri} would load something from elsewhere: {found[0]}")
    return output
