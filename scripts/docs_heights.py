"""Measure the reference in a real browser: the page of a name is at most three screens of 1280 by 800.

    PYTHONPATH=tests python -m scripts.docs_heights build/site

Ends with an error that names each page that is longer. Without a browser it says so, and passes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pages.browser import browse, installed

WIDTH: Final = 1280
SCREEN: Final = 800
MOST: Final = 3  # screens
_MEASURED = 40  # pages, those with the largest files
_HEIGHT: Final = "document.querySelector('article').getBoundingClientRect().height"


def heights(site: Path, browser: str) -> dict[str, float]:
    """Return the height of the longest names' pages, in screens."""
    pages = sorted(site.glob("reference/abeyant.*.html"), key=lambda page: page.stat().st_size, reverse=True)
    found = {}
    with browse(browser) as page:
        page.show(WIDTH, SCREEN)
        for file in pages[:_MEASURED]:
            page.open(file)
            found[file.stem] = page.run(_HEIGHT) / SCREEN
    return found


def main() -> None:
    """Print the longest page, and end with an error if one is too long."""
    if (browser := installed()) is None:
        print("docs: no chromium here, so the reference's pages were not measured")
        return
    found = heights(Path(sys.argv[1]), browser)
    longest = max(found, key=found.__getitem__)
    print(f"docs: the longest page of a name is {longest}, {found[longest]:.1f} screens")
    if wrong := [f"{name} ({height:.1f})" for name, height in found.items() if height > MOST]:
        sys.exit(f"docs: longer than {MOST} screens: {', '.join(wrong)}: shorten the docstring")


if __name__ == "__main__":
    main()
