"""The table and the page, from figures made up so that each target can be judged."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from lab.benchmarks import notes, picture, plots, table, wording
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.measurement import OPERATIONS, ROUND, Measurement
from lab.benchmarks.page import FIGURES, figures_page, page
from lab.benchmarks.results import Results, view
from lab.benchmarks.targets import TARGETS
from lab.experiment import TAKEN, Measure, cell
from lab.results import Record


def made_up(ours: float, theirs: float) -> Results:
    results = Results({"processor": "a processor", "cores": "2"}, {"Python": "3"})
    for row in ROWS.values():
        for size in row.sizes:
            for rival in row.rivals:
                figure = ours if rival in ("system", "manual", "purgatory", "columns") else theirs
                extra = {"late": [figure, figure + 1], "cpu": [figure]}
                results.add(Measurement(rival, row.name, size, [figure] * 7, 1, extra, "2026-01-01T00:00:00+00:00"))
    return results


def verdicts(results: Results) -> list[str]:
    lines = page(results, {}, {}).splitlines()
    titles = {target.title for target in TARGETS}
    return [
        line.split("|")[-2].strip() for line in lines if line.startswith("|") and line.split("|")[1].strip() in titles
    ]


def test_targets_that_are_reached() -> None:
    # 10 ns an operation is within every limit but those of operations a second
    reached = verdicts(made_up(10, 20))
    assert len(reached) == len(TARGETS)
    assert reached.count("**missed**") == 2


def test_targets_that_are_missed() -> None:
    missed = verdicts(made_up(10**8, 10**7))
    # what is never early stays so, what is flat stays flat, and operations a second are plenty
    assert missed.count("reached") == 4


def test_what_was_not_measured_is_said_to_be_so() -> None:
    results = made_up(10, 20)
    results.measurements = [one for one in results.measurements if one.row not in ("stop", "jump")]
    assert verdicts(results).count("not measured") == 2


def test_a_missed_target_is_explained_or_said_not_to_be() -> None:
    results = made_up(10, 20)
    said = page(results, {}, {"replay": "Because of this.", "pair": "Not missed, so not shown."})
    assert "**columnar replay, 100 k pending, on one core**: 0 M/s; target: ≥ 10 M/s.\n\nBecause of this.\n" in said
    assert "**enqueue benchmark in small**: 0.010 k/s; target: ≥ 300 k/s.\n\n*Not explained yet.*\n" in said
    assert "Not missed, so not shown." not in said


def test_peers_stand_beside_a_target_in_its_own_terms() -> None:
    results = made_up(10, 20)
    results.find("asyncio", "lateness", 100_000).extra["late"] = [-2e6, 1e6]  # type: ignore[union-attr]
    results.find("asyncio", "pair", 1_000_000).rounds[:] = [50.0] * 7  # type: ignore[union-attr]
    lines = {
        line.split("|")[1].strip(): line.split("|")[2:] for line in page(results, {}, {}).splitlines() if "|" in line
    }
    cells = {what: [cell.strip() for cell in line] for what, line in lines.items()}
    assert cells["the same, flat"][:3] == ["2.50x", "1.00x", "1.00x"]
    assert cells["never early: 100 k timers on the real clock"][:2] == ["-2.000 ms", "+0.000 ms"]
    assert cells["the same, processor time per request"][2:5] == ["0.020 µs", "less than the JVM's", "0.010 µs"]
    assert cells["the same, to Kafka on the JVM"][:3] == [wording.NONE] * 3


def test_notes_are_read_by_row(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("<!-- how to -->\n\n## pair\n\nOne.\n\nTwo.\n\n## start\n\n## stop\nThree.\n")
    assert notes.read(path) == {"pair": "One.\n\nTwo.", "stop": "Three."}
    assert notes.read(tmp_path / "none.md") == {}


def test_every_note_has_a_target() -> None:
    rows = {target.row for target in TARGETS}
    headings = [line[3:] for line in notes.NOTES.read_text().splitlines() if line.startswith("## ")]
    assert set(headings) == {*rows, "window"}, "the window is measured by a program of its own"


def test_a_busy_machine_and_what_is_left_out_are_named() -> None:
    results = made_up(1, 2)
    results.others = 0.5
    results.left_out["kafka"] = "no mvn on this machine"
    said = page(results, {}, {})
    assert "not quiet" in said
    assert "- Apache Kafka (JVM): no mvn on this machine" in said


def test_the_ratio_is_taken_at_the_largest_common_size() -> None:
    text = table.as_text(made_up(50, 200))
    line = next(line for line in text.splitlines() if line.startswith("abeyant SystemTimer"))
    assert line.split()[2:] == ["0.050", "0.050", "0.050", "0.25x", "0.25x"]


def test_a_ratio_is_never_nothing() -> None:
    small, large = (Measurement("", "pair", 0, [figure], 1, {}, "") for figure in (1.0, 1e6))
    assert wording.ratio(small, large) == "<0.001x"
    assert wording.ratio(large, small) == "1,000,000x"
    assert wording.ratio(small, Measurement("", "pair", 0, [1600.0], 1, {}, "")) == "0.001x"
    assert "| 0x |" not in (picture.DOCS / FIGURES).read_text()


def test_the_picture_is_drawn_from_the_page() -> None:
    said = figures_page(made_up(6e6, 7.24e8))
    assert set(picture.figures(said).values()) == {"6.00", "724"}
    assert ">6.00 ms</text>" in picture.svg(picture.figures(said))


def test_the_committed_picture_is_that_of_the_committed_page() -> None:
    drawn = picture.svg(picture.figures((picture.DOCS / FIGURES).read_text()))
    assert (picture.DOCS / "images" / "stall.svg").read_text() == drawn


def test_a_page_without_the_figures_is_refused_by_name() -> None:
    with pytest.raises(picture.MissingFigureError, match="no section 'Longest stall: expiries'"):
        picture.figures("# Benchmarks\n")
    results = made_up(1, 2)
    results.measurements = [one for one in results.measurements if one.rival != "uvloop"]
    with pytest.raises(picture.MissingFigureError, match=r"no figure of uvloop$"):
        picture.figures(figures_page(results))


def record(date: str, parameters: dict[str, int], *rounds: float, failed: str | None = None) -> Record:
    measures = [Measure(ROUND, figure, "ns") for figure in rounds] + [Measure(OPERATIONS, 10, "a round")]
    one = cell("bench memory", "system", parameters)
    return Record(one, [*measures, Measure(TAKEN, 0.2, "")], failed, {"cores": "2"}, {}, datetime.fromisoformat(date))


def test_a_view_has_the_last_of_each_measurement_and_all_its_processes() -> None:
    first, last = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    records = [record(first, {"size": 9, "process": process}, process) for process in range(3)]
    records += [
        record(last, {"size": 9, "process": 1}, 7.0),
        record(last, {"size": 5, "process": 0}, failed="no memory"),
        record(last, {}, failed="it is not installed"),
    ]
    results = view(records)
    [one] = results.measurements
    assert (one.key, one.rounds, one.operations) == (("system", "memory", 9), [0.0, 7.0, 2.0], 10)
    assert results.failed == {"memory, 5 pending, abeyant SystemTimer": "no memory"}
    assert results.left_out == {}, "what was measured is there"
    assert (results.updated, results.others) == (True, 0.2)
    assert view(records[-1:]).left_out == {"system": "it is not installed"}


def test_a_later_measurement_takes_the_place_of_an_earlier_one() -> None:
    results = made_up(1, 2)
    count = len(results.measurements)
    results.add(Measurement("system", "pair", 0, [9.0], 1, {}, "2026-01-02T00:00:00+00:00"))
    assert len(results.measurements) == count
    assert results.dates() == "2026-01-01 to 2026-01-02"


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0"), (10, "10"), (1_000, "1 k"), (100_000, "100 k"), (1_000_000, "1 M")]
)
def test_sizes_in_words(size: int, said: str) -> None:
    assert wording.size(size) == said


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need requirements/bench.txt")
    drawn = plots.draw(made_up(10, 20), tmp_path)
    assert (
        set(drawn)
        == {path.name for path in tmp_path.iterdir()}
        == {"costs.svg", "stalls.svg", "memory.svg", "lateness.svg", "replay.svg"}
    )
