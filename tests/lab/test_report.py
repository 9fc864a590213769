"""The report of a small, real run of every experiment: complete, self-contained, and drawn in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from abeyant.errors import AbeyantError
from lab.__main__ import main
from lab.experiment import QUICK, TAKEN, Measure, Parameters, cell
from lab.experiments import EXPERIMENTS, traces
from lab.report import write_report
from lab.results import Results
from lab.run import runs
from pages.browser import NAMES, Page, browse, installed
from pages.legible import lasting_faults

pytestmark = pytest.mark.slow  # its report takes ten seconds to make

_BROWSER = installed()
_in_browser = pytest.mark.skipif(_BROWSER is None, reason=f"no browser is installed (looked for {', '.join(NAMES)})")

_ENQUEUE: Parameters = {"requests": 400, "seconds": 20, "size": 100, "purge_interval": 100}
GRIDS: dict[str, list[tuple[str, Parameters]]] = {
    "enqueue": [
        (design, {"load": load, "rate": rate, **_ENQUEUE})
        for design in ("ours", "kafka", "old")
        for load in ("low", "high")
        for rate in (2_000, 4_000)
    ],
    "cost": [
        (design, {"pending": n})
        for design in ("wheel", "indexed-heap", "lazy-heap", "delay-queue")
        for n in (50, 500)
    ],
    "precision": EXPERIMENTS["precision"].grid(True),
    "purge": [
        (design, {"keys": keys, "purge_interval": interval, "operations": 300})
        for design, intervals in (("ours", [0]), ("kafka", [10, 100]), ("old", [10, 100]))
        for interval in intervals
        for keys in (1, 10)
    ],
    "geometry": [("wheel", {"trace": "low", "tick_us": t, "wheel_size": n}) for t in (1_000, 10_000) for n in (4, 20)],
    "idle": [
        (way, {"connections": 100, "packets_s": 100, "seconds": 35})
        for way in ("scan-all", "ring-of-sets", "add-again", "refresh")
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    results = Results(tmp_path_factory.mktemp("lab") / "results.jsonl")
    date = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(traces, "_COUNT", 2_000)
        for name, grid in GRIDS.items():
            cells = [cell(name, design, parameters) for design, parameters in grid]
            for one in cells:
                results.append(date, one, EXPERIMENTS[name].measure(one.design, one.choices()))
    return results


@pytest.fixture(scope="module")
def report(results: Results) -> Path:
    path = results.path.parent / "report.html"
    write_report(results.read(), path)
    return path


def test_no_logarithmic_axis_leaves_its_ticks_to_chance(results: Results) -> None:
    """Over one decade and a half, plotly by itself would name ten places of each, one over the other."""
    for name, experiment in EXPERIMENTS.items():
        figure = experiment.figure(runs(results.read(), name)[0])
        if isinstance(figure, str):
            continue
        layout = figure.to_dict()["layout"]
        axes = {key: axis for key, axis in layout.items() if key.startswith(("xaxis", "yaxis"))}
        free = [
            key for key, axis in axes.items() if axis.get("type") == "log" and not {"dtick", "tickvals"} & set(axis)
        ]
        assert free == [], name


def test_every_claim_stands_there_with_its_verdict_source_and_command(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    verdicts = re.findall(r'<span class="verdict">([^<]+)</span>', text)
    assert len(verdicts) == sum(len(experiment.claims) for experiment in EXPERIMENTS.values())
    assert set(verdicts) <= {"held", "held in part", "not held here", "not decided"}
    assert text.count(">Rule: Held ") == len(verdicts)
    assert text.count("Source: ") == len(verdicts)
    for name in EXPERIMENTS:
        assert f"<code>python -m lab run {name}</code>" in text
    assert "2026-01-02 03:04 UTC" in text


def test_the_command_says_what_the_page_says(
    results: Results, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--dir", str(results.path.parent), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == str(report)
    verdicts = re.findall(r'<span class="verdict">([^<]+)</span>', report.read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in said["result"]["claims"]] == verdicts
    assert main(["report", "--dir", str(results.path.parent)]) == 0
    *lines, empty, last = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in lines] == verdicts
    assert (empty, last) == ("", f"Report: {report}")


def test_how_busy_the_machine_was_and_how_long_it_was_measured_stand_at_the_top(
    results: Results, tmp_path: Path
) -> None:
    rows = results.read()
    rows = rows[rows["experiment"].isin(["cost", "geometry", "idle", "enqueue"])]
    cells = rows.drop_duplicates(["experiment", "design", "parameters"])
    idle, enqueue = (cells[cells["experiment"] == name] for name in ("idle", "enqueue"))
    added = [
        idle.assign(metric=TAKEN, value=0.5),
        idle.assign(metric=QUICK, value=1.0),
        enqueue.assign(metric=TAKEN, value=0.0),
    ]
    write_report(pd.concat([rows, *added]), tmp_path / "report.html")
    top = (tmp_path / "report.html").read_text(encoding="utf-8").partition('class="claims"')[0]
    assert "cost: a full run; how busy the machine was is not recorded." in top
    assert "geometry: a full run, on a virtual clock, which no load disturbs." in top
    assert "fewer and smaller cells, on a busy machine: other processes used at least 50% of its CPU" in top
    assert "enqueue: a full run, on a quiet machine: other processes used at least 0% of" in top


def test_an_earlier_run_is_laid_beside_the_last(results: Results, tmp_path: Path) -> None:
    rows = results.read()
    earlier = rows.assign(date=rows["date"] - pd.Timedelta(days=1))
    write_report(pd.concat([earlier, rows]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count("Earlier runs (1)") == len(EXPERIMENTS)
    assert "2026-01-01 03:04 UTC" in text
    assert text.count("2026-01-02 03:04 UTC") == len(EXPERIMENTS), "the last run makes the page"


def test_a_report_of_one_experiment_has_its_chapter_alone(results: Results, tmp_path: Path) -> None:
    rows = results.read()
    write_report(rows[rows["experiment"] == "idle"], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'class="plot" id="plot-(\w+)"', text) == ["idle"]


def test_of_nothing_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(AbeyantError, match="no results yet"):
        write_report(Results(tmp_path / "results.jsonl").read(), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_run_that_only_ran_out_of_memory_is_drawn_too(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    one = cell("enqueue", "old", {"load": "low", "rate": 1_000, **_ENQUEUE})
    results.append(datetime(2026, 1, 2, tzinfo=UTC), one, [Measure("out of memory", 1.0, "runs")])
    write_report(results.read(), tmp_path / "report.html")
    assert "not decided" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    assert _BROWSER is not None
    with browse(_BROWSER) as page:
        page.show()
        yield page


@_in_browser
@pytest.mark.parametrize("width", [1100, 400])
def test_every_figure_is_drawn_and_nothing_complains(page: Page, report: Path, width: int) -> None:
    page.show(width=width)
    page.forget()
    page.open(report)
    assert page.requests == [report.as_uri()]
    assert page.run("[...document.querySelectorAll('.heat tbody td')].filter(n => n.checkVisibility()).length") == 8
    for name in EXPERIMENTS.keys() - {"geometry"}:  # whose figure is heat maps
        drawn = page.run(f"""(() => {{
          const plot = document.getElementById("plot-{name}");
          const marks = '.scatterlayer .js-line, .scatterlayer .point, .barlayer .point path';
          return {{traces: plot.data.length, shown: plot.checkVisibility(),
                   marks: plot.querySelectorAll(marks).length, width: plot.getBoundingClientRect().width}};
        }})()""")
        assert drawn["shown"], name
        assert drawn["traces"] > 0, name
        assert drawn["marks"] >= drawn["traces"] / 2, name
        assert 0 < drawn["width"] <= width, name
        labelled = page.run(
            f"""Object.entries(document.getElementById("plot-{name}")._fullLayout)
            .filter(([key]) => /^[xy]axis/.test(key)).map(([, axis]) => [axis.title.text, axis._vals.length > 0])"""
        )
        assert all(words and ticks for words, ticks in labelled), (name, labelled)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert lasting_faults(page) == []
    page.show(width=width, scheme="dark")
    page.open(report)
    assert lasting_faults(page) == []
    assert page.complaints == []
