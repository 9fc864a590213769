"""The report in a real browser with no network: every plot is drawn, hover works, and nothing complains."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from abeyant.pipeline.report.page import write_report
from pages.browser import NAMES, Page, browse, installed
from pages.legible import faults, lasting_faults
from pipeline.report import samples

PLOTS = ("plot-opening", "plot-pending", "plot-waits", "plot-timeout")
_BROWSER = installed()

pytestmark = pytest.mark.skipif(_BROWSER is None, reason=f"no browser is installed (looked for {', '.join(NAMES)})")

# How many marks (lines, bars, points) a plot shows, of how many traces, and how large it is.
_DRAWN = """(() => {
  const plot = document.getElementById(%r);
  const marks = [...plot.querySelectorAll('.scatterlayer .js-line, .barlayer .point path, .scatterlayer .point')];
  const box = plot.querySelector('svg.main-svg').getBoundingClientRect();
  return {traces: plot.data.length, marks: marks.filter(m => m.getAttribute('d')).length,
          width: box.width, height: box.height, shown: plot.checkVisibility()};
})()"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    assert _BROWSER is not None
    with browse(_BROWSER) as page:
        page.show()
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("report")
    tables = samples.write(where / "tables", samples.tables(samples.operations()))
    write_report(tables, where / "report.html")
    return where / "report.html"


@pytest.fixture
def opened(page: Page, report: Path) -> Iterator[Page]:
    """The report, freshly loaded; whatever a test does with it, it must not complain nor ask for anything."""
    page.show()
    page.forget()
    page.open(report)
    yield page
    assert {address.partition("?")[0] for address in page.requests} == {report.as_uri()}
    assert page.complaints == []
    page.forget()


@pytest.fixture
def looked_at(page: Page, report: Path) -> Page:
    """The report for those who change nothing of it; loaded, unless one of them had it loaded and nobody else since."""
    if page.requests != [report.as_uri()]:
        page.show()
        page.forget()
        page.open(report)
    assert page.requests == [report.as_uri()]
    assert page.complaints == []
    return page


@pytest.mark.slow  # all plots
@pytest.mark.parametrize("plot", PLOTS)
def test_every_plot_is_drawn(looked_at: Page, plot: str) -> None:
    drawn = looked_at.run(_DRAWN % plot)
    assert drawn["traces"] > 0
    assert drawn["marks"] >= drawn["traces"]
    assert drawn["shown"]
    assert drawn["width"] > 600
    assert drawn["height"] > 100


def test_these_are_all_the_plots(looked_at: Page) -> None:
    assert looked_at.run("[...document.querySelectorAll('.plot')].map(plot => plot.id)") == list(PLOTS)
    assert not looked_at.run("[...document.querySelectorAll('.plot + .nothing')].some(n => n.checkVisibility())")


@pytest.mark.parametrize("plot", PLOTS)
def test_hover_tells_what_is_under_the_mouse(looked_at: Page, plot: str) -> None:
    looked_at.run(f"document.getElementById('{plot}').scrollIntoView({{behavior: 'instant', block: 'center'}})")
    # A mark to point at: the middle of a bar, a marker, or a place on a line.
    x, y = looked_at.run(f"""(() => {{
      const plot = document.getElementById('{plot}');
      const size = mark => {{ const box = mark.getBoundingClientRect(); return box.width * box.height; }};
      const marks = [...plot.querySelectorAll('.barlayer .point path, .scatterlayer .point')];
      const [mark] = marks.sort((a, b) => size(b) - size(a));
      if (mark) {{
        const box = mark.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
      }}
      const line = [...plot.querySelectorAll('.scatterlayer .js-line')].at(-1);
      const middle = line.getPointAtLength(line.getTotalLength() / 2).matrixTransform(line.getScreenCTM());
      return [middle.x, middle.y];
    }})()""")
    looked_at.point(x - 3, y)
    looked_at.point(x, y)
    label = looked_at.wait_for(f"document.querySelector('#{plot} .hoverlayer')?.textContent")
    said = {
        "plot-opening": "from",
        "plot-pending": "pending",
        "plot-waits": "after",
        "plot-timeout": "would expire",
    }
    assert said[plot] in label


@pytest.mark.slow
def test_choosing_an_instance_changes_figures_and_tables(opened: Page) -> None:
    tops = "document.querySelector('#plot-pending')._fullData.map(trace => Math.max(...trace.y))"
    shown = "[...document.querySelectorAll('[data-scope]')].filter(p => p.checkVisibility()).map(p => p.dataset.scope)"
    names = "[...document.getElementById('scope').options].map(option => option.text)"
    everything = opened.run(tops)
    assert set(opened.run(shown)) == {"0"}
    assert opened.run(names) == ["all instances", "1", "2", "3"]
    opened.run("(s => { s.value = '2'; s.dispatchEvent(new Event('change')); })(document.getElementById('scope'))")
    opened.wait_for(f"JSON.stringify({tops}) !== '{str(everything).replace(' ', '')}'")
    assert set(opened.run(shown)) == {"2"}
    assert all(opened.run(_DRAWN % plot)["marks"] > 0 for plot in PLOTS)


@pytest.mark.slow
def test_plots_keep_their_height_when_the_window_changes(opened: Page) -> None:
    heights = "[...document.querySelectorAll('.plot')].map(plot => plot.getBoundingClientRect().height)"
    widths = "[...document.querySelectorAll('.plot svg.main-svg')].map(svg => svg.getBoundingClientRect().width)"
    opened.run("(s => { s.value = '1'; s.dispatchEvent(new Event('change')); })(document.getElementById('scope'))")
    before = opened.run(heights)
    assert min(before) > 100
    opened.show(width=800)
    opened.wait_for(f"Math.max(...{widths}) < 800")
    assert opened.run(heights) == before
    assert opened.run("[...document.querySelectorAll('.plot')].map(plot => plot._fullLayout.height)") == before


@pytest.mark.slow
def test_the_share_axis_can_be_logarithmic_and_the_address_says_so(opened: Page, report: Path) -> None:
    logarithmic = "document.getElementById('plot-timeout')._fullLayout.yaxis.type === 'log'"
    assert not opened.run(logarithmic)
    opened.run("document.querySelector('[data-logarithmic]').click()")
    opened.wait_for(logarithmic)
    assert opened.run(_DRAWN % "plot-timeout")["marks"] > 0
    address = opened.run("location.href")
    assert address.endswith("?log=plot-timeout")
    opened.visit(address)
    opened.wait_for(logarithmic)
    opened.open(report)
    assert not opened.run(logarithmic)


@pytest.mark.slow
def test_a_kind_reaches_every_figure_and_table_and_the_address(opened: Page, report: Path) -> None:
    shown = "[...document.querySelectorAll('tr[data-kind]')].filter(row => row.checkVisibility())"
    kinds = f"[...new Set({shown}.map(row => row.dataset.kind))]"
    titles = (
        "[...document.querySelectorAll('section .plot .annotation-text')].map(t => t.textContent.split(' ')[0].trim())"
    )
    assert len(opened.run(kinds)) > 2
    choose = "(s => {{ s.value = '{}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('kind'))"
    opened.run(choose.format("FETCH_CONSUMER"))
    assert set(opened.run(kinds)) == {"FETCH_CONSUMER", "FETCH"}, "the API, in the table of all requests"
    opened.run(choose.format("JOIN_GROUP"))
    assert opened.run(kinds) == ["JOIN_GROUP"]
    apis = "[...document.querySelectorAll('section')].find(s => s.textContent.startsWith('Every request'))"
    rows = f"[...{apis}.querySelectorAll('tbody tr')].filter(row => row.checkVisibility())"
    assert opened.run(f"{rows}.map(row => row.cells[0].textContent)") == ["JOIN_GROUP"]
    assert {title.split("\u00a0")[0] for title in opened.run(titles)} == {"JOIN_GROUP"}
    assert all(opened.run(_DRAWN % plot)["marks"] > 0 for plot in PLOTS)
    address = opened.run("location.href")
    assert address.endswith("?kind=JOIN_GROUP")
    opened.run(choose.format(""))
    assert opened.run("location.search") == ""
    opened.visit(address)
    opened.wait_for("document.getElementById('kind').value === 'JOIN_GROUP'")
    assert opened.run(kinds) == ["JOIN_GROUP"]


@pytest.mark.slow  # one more report
def test_an_incident_is_shown_in_time(opened: Page, report: Path) -> None:
    worst = "[...document.querySelectorAll('a.when')].find(a => a.closest('tr').dataset.kind === 'PRODUCE')"
    start = opened.run(f"{worst}.textContent.trim()")
    opened.run(f"{worst}.click()")
    first, last = opened.run(
        "document.getElementById('plot-pending')._fullLayout.xaxis.range.map(t => Date.parse(t + 'Z'))"
    )
    assert first < datetime.fromisoformat(f"{start}Z").timestamp() * 1000 < last
    assert last - first < 200_000
    assert "from=" in opened.run("location.search")
    assert opened.run("document.getElementById('whole').checkVisibility()")
    opened.run("document.getElementById('whole').click()")
    assert opened.run("location.search") == ""


# What the three tables (kinds, keys, APIs) say of a kind, and the figures of their counts, in the part that is shown.
_SAID = """(() => {
  const cell = (row, name) => {
    const heads = [...row.closest('table').tHead.rows[0].cells];
    return Number(row.cells[heads.findIndex((head) => head.dataset.column === name)]?.dataset.value);
  };
  const rows = [...document.querySelectorAll('[data-scope] tr[data-number]')].filter((row) => row.checkVisibility());
  const all = (name) => rows.map((row) => cell(row, name)).filter((value) => !Number.isNaN(value));
  const kinds = [...rows].filter((row) => !Number.isNaN(cell(row, 'completed')) && !row.querySelector('code'));
  return {
    operations: Object.fromEntries(kinds.map((row) => [row.dataset.kind, cell(row, 'operations')])),
    expired: Object.fromEntries(kinds.map((row) => [row.dataset.kind, cell(row, 'expired')])),
    p50: Object.fromEntries(kinds.map((row) => [row.dataset.kind, cell(row, 'p50_ms')])),
    keys: rows.filter((row) => row.querySelector('code')).length,
    requests: all('requests').reduce((one, other) => one + other, 0),
    bars: document.getElementById('plot-waits')._fullData
      .flatMap((bar) => Array.from(bar.y)).reduce((one, other) => one + other, 0),
    curve: document.getElementById('plot-timeout').data.map((line) => line.customdata?.[0]),
  };
})()"""


def test_an_incident_is_played(opened: Page) -> None:
    """The window's drawing: at each time what waits then, in buckets of Kafka's wheel and by the time that is left."""
    assert opened.run("document.getElementById('incident').checkVisibility()")
    seen = opened.run("""(() => {
      const { incidents: [incident] } = JSON.parse(document.getElementById('incident-data').textContent);
      const time = document.getElementById('incident-time');
      return [0.1, 0.5, 0.9].map((share) => {
        time.value = share * incident.lasted; time.dispatchEvent(new Event('input'));
        const at = Number(time.value), now = Math.floor(incident.first + at);
        const waits = incident.waits.filter((one) => one.start <= at && at < one.start + one.waited);
        const deadlines = waits.map((one) => Math.ceil(incident.first + one.start + one.timeout));
        // The first level whose 20 buckets, from the clock's on, reach the deadline.
        const within = (deadline, span) => deadline - deadline % span < now - now % span + 20 * span;
        const levels = deadlines.map((one) => [1, 20, 400, 8000].findIndex((span) => within(one, span)));
        const drawn = [...document.querySelectorAll('#incident .wheel-bucket title')].map((one) => one.textContent);
        const found = drawn.flatMap((text) => {
          const [, level, tasks] = /^level (\\d), .*: (\\d+) task/.exec(text);
          return Array(Number(tasks)).fill(Number(level) - 1);
        });
        return [waits.length, document.querySelector('#incident .wheel-count').textContent, levels.sort().join(),
          found.sort().join(), document.querySelectorAll('#incident .lane-dot').length];
      });
    })()""")
    for waiting, pending, levels, drawn, dots in seen:
        assert waiting > 0
        assert int(pending) == waiting
        assert drawn == levels
        assert 0 < dots <= waiting, "keys that do not fit are left out"
    opened.run("document.getElementById('incident-time').value = 0; document.getElementById('incident-play').click()")
    opened.wait_for("Number(document.getElementById('incident-time').value) > 0")
    opened.run("document.getElementById('incident-play').click()")
    assert opened.run("document.getElementById('incident-play').textContent") == "Play"
    assert "pending; so far" in opened.run("document.getElementById('incident-now').textContent")


@pytest.mark.slow
def test_a_part_of_the_time_reaches_every_table_and_figure(opened: Page, report: Path) -> None:
    done = samples.operations()
    first, width = done["start"].min().floor("6s"), 6 * 32
    whole = opened.run(_SAID)
    assert sum(whole["operations"].values()) == len(done)
    begin, end = (int(first.timestamp()) + n * width for n in (1, 2))
    part = done[done["start"].map(lambda start: begin <= start.timestamp() < end)]
    opened.visit(f"{report.as_uri()}?from={begin}&to={end}")
    opened.wait_for("document.getElementById('slices').checkVisibility()")
    said = opened.run(_SAID)
    counted = part.groupby("kind").size()
    assert said["operations"] == counted.to_dict()
    assert said["expired"] == (part["outcome"] == "expired").groupby(part["kind"]).sum().to_dict()
    for kind, rows in part.groupby("kind"):
        assert said["p50"][kind] == pytest.approx(rows["waited_ms"].quantile(0.5, "higher"), rel=0.26)
    assert said["requests"] == len(part)
    assert 0 < said["keys"] <= whole["keys"]
    assert said["bars"] == (part["waited_ms"] > 0).sum()
    assert said["curve"] == [counted[kind] for kind in samples.KINDS]
    assert lasting_faults(opened) == []
    opened.run("document.getElementById('whole').click()")
    assert opened.run(_SAID) == whole


@pytest.mark.slow
def test_tables_are_sorted_by_a_click_and_long_ones_folded(opened: Page, report: Path) -> None:
    tables = "[...document.querySelectorAll('table.sortable')].filter(table => table.checkVisibility())"
    table = f"{tables}.find(table => table.textContent.includes('waited in all'))"
    shown = f"[...({table}).tBodies[0].rows].filter(row => row.checkVisibility()).length"
    assert opened.run(shown) == 12
    opened.run(f"({table}).parentElement.querySelector('button.more').click()")
    assert opened.run(shown) > 12
    column = f"[...({table}).tHead.rows[0].cells].findIndex(cell => cell.textContent === 'waited in all')"
    values = f"(c => [...({table}).tBodies[0].rows].map(row => Number(row.cells[c].dataset.value)))({column})"
    for descending in (True, False):
        opened.run(f"({table}).tHead.rows[0].cells[{column}].querySelector('button').click()")
        assert opened.run(values) == sorted(opened.run(values), reverse=descending)
    # The order is in the address.
    opened.visit(report.as_uri() + opened.run("location.search"))
    assert opened.run(values) == sorted(opened.run(values))
    assert opened.run(f"({table}).tHead.rows[0].cells[{column}].ariaSort") == "ascending"
    opened.visit(f"{report.as_uri()}?sort=99.0.ascending&sort=0.99.ascending&sort=none")
    assert opened.complaints == []


def test_the_contents_lead_to_every_section(looked_at: Page) -> None:
    links = looked_at.run("[...document.querySelectorAll('.contents a')].map(a => a.getAttribute('href').slice(1))")
    assert links == looked_at.run("[...document.querySelectorAll('h2')].map(h => h.id)")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        pytest.param("light", 1100, marks=pytest.mark.slow),
        pytest.param("dark", 1100, marks=pytest.mark.slow),
        pytest.param("light", 400, marks=pytest.mark.slow),
        ("dark", 400),
        pytest.param("light", 320, marks=pytest.mark.slow),
    ],
)
def test_all_of_it_can_be_read(opened: Page, scheme: str, width: int) -> None:
    opened.show(width=width, scheme=scheme)
    opened.wait_for(
        f"Math.max(...[...document.querySelectorAll('.plot svg.main-svg')].map(s => s.clientWidth)) <= {width}"
    )
    assert lasting_faults(opened) == []


@pytest.mark.slow
def test_what_cannot_be_read_is_found(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><title>bad</title><link rel=icon href=data:,>"
        "<style>body{margin:0;background:#fff}p{margin:0}</style>"
        "<p style='color:#bbb'>pale</p><p style='width:20px;overflow:hidden;white-space:nowrap'>clipped words</p>"
        "<p>under</p><p style='margin-top:-1em'>over</p><p style='width:3000px'>wide</p>",
        encoding="utf-8",
    )
    page.show(width=1100)
    page.open(bad)
    found = "\n".join(faults(page))
    for fault in ("contrast", "clipped", "overlap", "wider than the window"):
        assert fault in found


@pytest.mark.slow  # one more report
def test_names_from_the_log_are_shown_letter_by_letter(looked_at: Page) -> None:
    cells = looked_at.run("[...document.querySelectorAll('td code')].map(code => code.textContent)")
    for key in samples.HOSTILE_KEYS[:4]:
        assert key in cells
    foreign = "main img, main svg a, main script:not(#incident-data)"
    assert looked_at.run(f"document.querySelectorAll('{foreign}').length") == 0


def test_no_button_sends_data_away(looked_at: Page) -> None:
    buttons = looked_at.run("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    assert set(buttons) == {"Download plot as a PNG", "Zoom", "Pan", "Reset axes"}


def test_it_follows_the_readers_scheme(opened: Page) -> None:
    ink = "getComputedStyle(document.querySelector('#plot-waits .xtick text')).fill"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = opened.run(ink), opened.run(ground)
    opened.show(scheme="dark")
    opened.wait_for(f"{ink} !== '{light[0]}' && {ground} !== '{light[1]}'")


@pytest.mark.slow
def test_it_fits_a_phone(opened: Page, report: Path) -> None:
    opened.show(width=390, height=844)
    opened.forget()
    opened.open(report)
    assert opened.run("document.documentElement.scrollWidth") == 390
    for plot in PLOTS:
        drawn = opened.run(_DRAWN % plot)
        assert drawn["marks"] > 0
        assert drawn["width"] <= 390


@pytest.mark.slow
def test_a_report_of_nothing_is_shown_too(page: Page, tmp_path: Path) -> None:
    tables = samples.tables(samples.operations(instances=["1"]))
    empty = {name: frame.head(0) for name, frame in tables.items()}
    write_report(samples.write(tmp_path / "tables", empty), tmp_path / "report.html")
    page.forget()
    page.open(tmp_path / "report.html")
    assert page.run("document.querySelector('h1').textContent") == "No request in this log"
    assert page.run("[...document.querySelectorAll('.plot')].every(plot => !plot.checkVisibility())")
    assert page.run("[...document.querySelectorAll('.plot ~ .nothing')].every(note => note.checkVisibility())")
    assert page.requests == [(tmp_path / "report.html").as_uri()]
    assert page.complaints == []


@pytest.mark.slow
def test_these_checks_can_fail(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><title>bad</title><link rel=icon href=data:,><img src=http://example.invalid/pixel.png>"
        "<script>console.error('said so'); throw new Error('thrown');</script>",
        encoding="utf-8",
    )
    page.forget()
    page.open(bad)
    assert "http://example.invalid/pixel.png" in page.requests
    complaints = "\n".join(page.complaints)
    assert "said so" in complaints
    assert "thrown" in complaints
    assert "net::ERR" in complaints
