"""Whether a page in a real browser with no network draws its figures, can be read, and complains of nothing."""

from __future__ import annotations

from pathlib import Path

from pages.browser import browse, installed
from pages.legible import lasting_faults

_DRAWN = """[...document.querySelectorAll('.plot')].map(plot => [
  plot.id, plot.checkVisibility(), plot.querySelectorAll('.scatterlayer .point, .js-line, .barlayer .point, .hm').length
])"""


def check_page(report: Path, plots: list[str]) -> None:
    """Nothing is asked of a browser where there is none: the page itself is there in any case."""
    assert 1_000_000 < report.stat().st_size <= 2_000_000  # plotly's script is inside, and no more of it than is used
    browser = installed()
    if browser is None:
        return
    with browse(browser) as page:
        page.show()
        page.open(report)
        drawn = page.run(_DRAWN)
        assert [(name, shown) for name, shown, _ in drawn] == [(plot, True) for plot in plots]
        assert all(marks > 0 for _, _, marks in drawn), drawn
        for scheme, width in (("light", 1100), ("dark", 400)):
            page.show(width=width, scheme=scheme)
            page.open(report)
            assert lasting_faults(page) == [], (scheme, width)
        assert set(page.requests) == {report.as_uri()}
        assert page.complaints == []
