"""The example notebooks, each run by a kernel of its own, and what they show, in a real browser with no network."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from abeyant.pipeline import plots
from pages.browser import NAMES, Page, browse, installed
from pages.legible import lasting_faults

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow  # each notebook starts a kernel, most of them with a JVM of its own

NOTEBOOKS = Path(__file__).parents[3] / "examples" / "notebooks"
EXAMPLE = NOTEBOOKS / "orders.ipynb"

OPERATIONS = """SELECT 'i' AS instance, 'o' AS op_id, 'k' AS kind, timestamp '2026-01-01 00:00:00' AS start,
    5000L AS timeout_ms, array(named_struct('key', 'a', 'required', 1L)) AS watches, 'all' AS condition"""
EVENTS = "SELECT 'i' AS instance, 'a' AS key, timestamp '2026-01-01 00:00:03' AS at, 1L AS progress"

# Of our own threads: while a cell runs, after it, and when progress was switched off.
THREADS = """\
import threading
ours = lambda: [thread.name for thread in threading.enumerate() if thread.name.startswith("abeyant")]
seen = []
get_ipython().events.register("post_run_cell", lambda *_: seen.append(ours()))
seen.append(ours())
"""
OFF = """\
from abeyant import pipeline
pipeline.notebook_progress(False)
print(seen, ours())
"""


def executed(notebook: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> list[Any]:
    """Run a notebook in a folder, and return its cells of code."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(home / name))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: Any, kind: str = "text/plain") -> list[str]:
    """What a cell shows, printed or displayed."""
    # A kernel that is slow enough sends one line in two pieces.
    pieces = itertools.groupby(cell.outputs, lambda output: output.get("name") or id(output))
    groups = [list(group) for _, group in pieces]
    return [
        "".join(output.text for output in group) if group[0].output_type == "stream" else group[0].data[kind]
        for group in groups
    ]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(text) for text in (THREADS, OFF)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        return executed(notebook, EXAMPLE.parent, monkeypatch, tmp_path_factory.mktemp("home"))


def cell_with(cells: list[Any], text: str) -> Any:
    [found] = [cell for cell in cells if text in cell.source]
    return found


def kept(name: str) -> list[Any]:
    """The cells of code of a notebook as it is in the repository, with what they showed."""
    return [cell for cell in nbformat.read(NOTEBOOKS / name, as_version=4).cells if cell.cell_type == "code"]


def test_the_notebook_with_spark_shows_what_it_has_kept(example: list[Any]) -> None:
    then = kept(EXAMPLE.name)
    for now, before in zip(example, then, strict=False):  # those added above come after
        took = re.compile(r"Spark: \d+ s")  # differs, and is not there where it is too short
        assert took.sub("", "".join(shown(now))) == took.sub("", "".join(shown(before))), before.source
    assert sum(bool(cell.outputs) for cell in then) >= 3


@pytest.mark.parametrize("name", ["broker.ipynb", "tables.ipynb"])
def test_a_notebook_shows_what_it_has_kept(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "broker.ipynb":
        pytest.importorskip("confluent_kafka")
    cells = executed(nbformat.read(NOTEBOOKS / name, as_version=4), NOTEBOOKS, monkeypatch, tmp_path)
    for now, then in zip(cells, kept(name), strict=True):
        assert "".join(shown(now)) == "".join(shown(then)), then.source
    assert any(cell.outputs for cell in kept(name))


def test_every_notebook_is_run() -> None:
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == {"orders.ipynb", "broker.ipynb", "tables.ipynb"}


def test_a_line_tells_how_far_spark_was(example: list[Any]) -> None:
    line, counted = shown(cell_with(example, ".count()"))
    assert re.fullmatch(r"Spark: \d+ s", line)
    assert re.findall(r"(completed|expired)\|\s*(\d+)", counted) == [("completed", "30"), ("expired", "10")]


def test_no_thread_is_left_behind(example: list[Any]) -> None:
    assert shown(example[-1]) == [f"{[['abeyant-notebook'], []]} []\n"]


def test_the_plots_say_what_the_tables_say(example: list[Any]) -> None:
    *_, by_spark = shown(cell_with(example, "plots(outcomes"))
    assert by_spark.startswith("40 operations: 30 completed, 10 expired (25\N{NO-BREAK SPACE}%)\n")
    assert shown(cell_with(example, "plots(in_process"))[-1] == f"{by_spark}\n"


CONNECT = """\
import threading
from abeyant import pipeline
spark = pipeline.spark_session({url!r}, config={{"spark.connect.progress.reportInterval": "10ms"}})
operations = spark.sql({operations!r})
events = spark.sql({events!r})
outcomes = pipeline.resolve(operations, events)
%%
print(outcomes.collect()[0].outcome, [t.name for t in threading.enumerate() if t.name.startswith("abeyant")])
%%
pipeline.notebook_progress(False)
print(outcomes.collect()[0].outcome)
spark.stop()
"""


def test_a_server_of_spark_connect_tells_too(connect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = CONNECT.format(url=connect_url, operations=OPERATIONS, events=EVENTS)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in text.split("%%\n")])
    _, watched, unwatched = executed(notebook, tmp_path, monkeypatch, tmp_path)
    line, printed = shown(watched)
    assert re.fullmatch(r"Spark: \d+ s", line)
    assert printed == "completed []\n"
    assert shown(unwatched) == ["completed\n"]


# As Jupyter shows an output: in a page whose ground is that of its theme, whatever the reader's own colours are.
HOST = """<!doctype html><html><head><meta name="viewport" content="width=device-width, initial-scale=1"><style>
body { margin: 0; padding: 0 0 0 12px } body.night { background: #111; color: #eee }
</style></head><body class="%s"><main>%s</main></body></html>"""

DRAWN = """(() => {
  const { contentDocument: inside, offsetHeight: height } = document.querySelector('iframe');
  const root = inside.documentElement;
  const over = height - root.getBoundingClientRect().height;
  return [inside.querySelectorAll('.plot .barlayer .point').length > 0 && over >= 0 && over < 1,
          root.scrollHeight <= height, inside.defaultView.getComputedStyle(inside.body).backgroundColor];
})()"""
# What there is instead: what was drawn, how high it is, and whether the browser paints at all.
SEEN = """(async () => {
  const { contentDocument: inside, offsetHeight, offsetWidth, style } = document.querySelector('iframe');
  const root = inside.documentElement;
  const late = new Promise((done) => setTimeout(done, 2000));
  const painted = await Promise.race([new Promise(requestAnimationFrame), late]);
  const plots = [...inside.querySelectorAll('.plot')].map((plot) => [plot.id, plot.hidden, plot.style.height,
    plot.offsetWidth, plot.querySelectorAll('.main-svg').length, plot.querySelectorAll('.point').length]);
  return JSON.stringify({ plots, root: root.getBoundingClientRect().height, scrolled: root.scrollHeight,
    as: root.className, frame: [offsetWidth, offsetHeight, style.height], window: [innerWidth, innerHeight],
    ready: inside.readyState, shown: document.visibilityState, painted: painted !== undefined,
    plotly: typeof inside.defaultView.Plotly });
})()"""
DAY, NIGHT = "rgb(253, 253, 251)", "rgb(20, 23, 27)"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    browser = installed()
    if browser is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)})")
    with browse(browser) as page:
        yield page


def test_a_frame_fits_where_nothing_is_painted_and_a_name_may_be_of_any_length(page: Page, tmp_path: Path) -> None:
    """As in a tab that nobody sees: there no observer of sizes is called."""
    kinds = ["constructor", "k" * 3000, "<b>%{y}"]
    outcomes = pa.table(
        {
            "instance": ["i"] * 3, "op_id": ["1", "2", "3"], "kind": kinds,
            "outcome": ["completed", "expired", "expired"],
            "at": pa.array([0, 0, 0], pa.timestamp("us", "UTC")), "waited_ms": [5.0, 70.0, 40.0],
        }
    )  # fmt: skip
    watches = [[{"key": "k" * 3000, "required": 1}]] * 3
    html = plots(outcomes, outcomes.append_column("watches", pa.array(watches)))._repr_html_()
    host = tmp_path / "host.html"
    host.write_text(HOST % ("day", html), encoding="utf-8")
    none = "window.ResizeObserver = class { observe() {} unobserve() {} disconnect() {} }"
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=none)["identifier"]
    try:
        page.forget()
        page.show(width=1100)
        page.open(host)
        page.wait_for(f"{DRAWN}[0]", SEEN)
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    page.open(host)
    page.wait_for(f"{DRAWN}[0]", SEEN)
    assert lasting_faults(page, in_frame=True) == []
    assert page.complaints == []


@pytest.mark.parametrize(("reader", "theme", "width"), [("light", "night", 400), ("dark", "day", 1100)])
def test_the_plots_are_drawn_and_can_be_read(
    example: list[Any], page: Page, tmp_path: Path, reader: str, theme: str, width: int
) -> None:
    html = shown(cell_with(example, "plots(outcomes"), "text/html")
    host = tmp_path / "host.html"
    host.write_text(HOST % (theme, "\n".join(html)), encoding="utf-8")
    page.forget()
    page.show(width=width, scheme=reader)
    page.open(host)
    page.wait_for(f"{DRAWN}[0]", SEEN)
    assert page.run(DRAWN) == [True, True, NIGHT if theme == "night" else DAY]
    assert lasting_faults(page) == []
    assert lasting_faults(page, in_frame=True) == []
    page.run("document.body.classList.toggle('night')")
    page.wait_for(f"{DRAWN}[2] === '{DAY if theme == 'night' else NIGHT}'")
    assert lasting_faults(page, in_frame=True) == []
    assert set(page.requests) <= {host.as_uri(), "about:srcdoc"}
    assert page.complaints == []
