"""The site's reference: a page a name, made of the pages in docs/reference.

Those name what they are about, `::: path` with options below it. On the site each name has a page of its own, and the
page that named it lists them. Where a class has many members, each of these has a page, too, so that a page is at most
three screens; `make docs` measures that in a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import griffe

from scripts.docs_docstrings import InheritDocstrings, is_for_users, is_record
from scripts.public_names import MODULES

ROOT = Path(__file__).resolve().parents[1]
NAMED: Final = re.compile(r"^::: (\S+)\n((?:    .*\n)*)", re.MULTILINE)
LISTED: Final = re.compile(r"^(- `(\w+))(.*)$", re.MULTILINE)
_LINES = 50  # of docstrings and headings of members: about what two screens hold
_HEADING = 5  # lines that a member's name and signature take
_FIELD = 3  # and a field without a docstring


@cache
def package() -> Any:
    """Return the package as Griffe reads it."""
    extensions = griffe.load_extensions(InheritDocstrings)
    return griffe.load(
        "abeyant", search_paths=[ROOT / "src"], resolve_aliases=True, allow_inspection=False, extensions=extensions
    )


def find(path: str) -> Any:
    """Return the object at a path; a function that is named as its module, not the module."""
    one = package()[path.removeprefix("abeyant.")]
    return one.members[one.name] if one.is_module else one


def public_name(path: str) -> str:
    """Return by which name users import what is at `path`: from the innermost public module that exports it."""
    name = path.rpartition(".")[2]
    modules = [one for one in MODULES if path.startswith(f"{one}.")]
    exporting = [one for one in modules if name in (_module(one).exports or ())]
    return f"{max(exporting, key=len)}.{name}" if exporting else path


def _module(name: str) -> Any:
    return package() if name == "abeyant" else package()[name.removeprefix("abeyant.")]


def first_sentence(one: Any) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = " ".join(one.docstring.value.partition("\n\n")[0].split()) if one.docstring else ""
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def members(one: Any) -> dict[str, Any]:
    """Return the members of a class that are described, and for users; of a record, all its fields."""
    fields = {name for name, member in one.members.items() if member.is_attribute} if is_record(one) else set()
    public = {name: member for name, member in one.all_members.items() if not name.startswith("_")}
    return {
        name: member
        for name, member in public.items()
        if name in fields
        or any(name in base.members and is_for_users(base.members[name]) for base in (one, *one.mro()))
    }


def is_long(one: Any) -> bool:
    """Return whether a class has so many members that each has a page of its own."""
    if not one.is_class:
        return False
    docstrings = [member.docstring.value if member.docstring else None for member in members(one).values()]
    return sum(_FIELD if text is None else len(text.splitlines()) + _HEADING for text in docstrings) > _LINES


def pages(markdown: str, area: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page for what `markdown`, the page `area`, names."""
    back = f"[{markdown.partition(chr(10))[0].lstrip('# ')}]({area}.md)"
    for path, options in NAMED.findall(markdown):
        one, name = find(path), public_name(path)
        options = re.sub(r"^ +heading_level: .*\n", "", options, flags=re.MULTILINE)
        options = options or "    options:\n"
        shown = f"{options}      heading_level: 1\n"
        if one.is_class and is_record(one):
            shown += "      show_if_no_docstring: true\n"
        if not is_long(one) or " members: false" in options:
            yield f"{name}.md", f"{back} · `{name}`\n\n::: {path}\n{shown}"
            continue
        listed = "\n".join(
            f"- [`{member}`]({name}.{member}.md): {first_sentence(of)}".removesuffix(": ")
            for member, of in members(one).items()
        )
        none = "      members: false\n      inherited_members: false\n"
        alone = f"::: {path}\n    options:\n      heading_level: 1\n{none}"
        listed = f'<div class="members" markdown>\n\n{listed}\n\n</div>\n'
        yield f"{name}.md", f"{back} · `{name}`\n\n{alone}\n## Methods and attributes\n\n{listed}"
        for member in members(one):
            text = f"{back} · [`{name}`]({name}.md)\n\n::: {path}.{member}\n    options:\n      heading_level: 1\n"
            yield f"{name}.{member}.md", text


def overview(markdown: str) -> str:
    """Return a page of the reference with a line for each name in place of what is on the name's own page."""

    def line(found: re.Match[str]) -> str:
        one, name = find(found[1]), public_name(found[1])
        said = first_sentence(one)
        return f"- [`{one.name}`]({name}.md){{ #{found[1]} }}" + (f": {said}" if said else "") + "\n"

    return re.sub(r"(^- .*\n)\n(?=- )", r"\1", NAMED.sub(line, markdown), flags=re.MULTILINE)


def linked_names(markdown: str, known: set[str]) -> str:
    """Return the page of all names with a link on each name that has a page, of `known`."""
    sections = re.split(r"^(## `([\w.]+)`)$", markdown, flags=re.MULTILINE)
    text = sections[0]
    for heading, module, below in zip(*(iter(sections[1:]),) * 3, strict=True):

        def line(found: re.Match[str], module: str = module) -> str:
            page = f"{module}.{found[2]}.md"
            return f"{found[1]}{found[3]}" if page not in known else f"- [`{found[2]}`]({page})`{found[3]}"

        text += heading + LISTED.sub(line, below)
    return text
