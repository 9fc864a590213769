"""The replay's page and its sentences, of small tables: what is unknown is a band, Kafka's wheel is compared with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from abeyant.pages.formatting import escaped
from abeyant.pipeline.commands.replay import _summary
from abeyant.pipeline.report.replay_page import write_replay_report
from abeyant.pipeline.report.replay_sentences import conclusions, time_out_sentences
from abeyant.pipeline.report.small_plots import milliseconds
from abeyant.pipeline.results.directory import MARKER
from abeyant.pipeline.schemas import CLIENT_TIMEOUTS
from pages.browser import browse, installed
from pages.legible import lasting_faults

_BROWSER = installed()
_OWN = float("nan")


def replayed() -> pd.DataFrame:
    """Two brokers, three wheels, two time-outs; under the longer one 20 may have completed. And a purge interval."""
    wheels = [(1.0, 20, 800, 1_000), (1.0, 512, 100, 1_000), (100.0, 20, 40, 250)]
    rows = [
        {"instance": name, "tick_ms": tick, "wheel_size": size, "timeout_ms": timeout, "purge_interval": _OWN}
        | {"cascades": cascades, "wakeups": wakeups, "lateness_most_ms": tick * 0.99, "memory_bytes": 64 * size}
        | {"unknown": 0 if timeout != timeout else 20, "expired": 60, "completed": 940}
        for name in ("broker-1", "broker-2")
        for timeout in (_OWN, 30_000.0)
        for tick, size, cascades, wakeups in wheels
    ]
    rows.append(rows[0] | {"purge_interval": 100.0})
    same = {"operations": 1_000, "left_out": 0, "timers": 900, "pending_most": 12, "bucket_operations": 2_000}
    return pd.DataFrame(rows).assign(**same, watched_most=40.0, purges=3.0, purged_past=120.0)


def what_if() -> pd.DataFrame:
    shares = {10: (0.9, 0.9), 1_000: (0.06, 0.06), 30_000: (0.02, 0.06), 60_000: (0.0, 0.005)}
    return pd.DataFrame(
        [
            {"instance": name, "kind": kind, "timeout_ms": timeout, "expired_share": least, "expired_share_most": most}
            | {"operations": 1_000, "completed": 940, "expired": 1_000 * least, "unknown": 1_000 * (most - least)}
            | {"p50_ms": 3.0, "p95_ms": 80.0, "p99_ms": float("nan")}
            for name in ("*", "broker-1", "broker-2")
            for kind in ("PRODUCE", "FETCH")
            for timeout, (least, most) in shares.items()
        ]
    )


def own() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"instance": name, "kind": "PRODUCE", "least_ms": 1_500, "median_ms": 30_000, "most_ms": 30_000}
            | {"expired_least_ms": 1_500.0, "expired_most_ms": 2_500.0}
            for name in ("*", "broker-1", "broker-2")
        ]
    )


def clients() -> pd.DataFrame:
    rows = [("PRODUCE", f"app-{n}", 1_500 + 100 * n, 10, n) for n in range(6)]
    rows += [("PRODUCE", "app-5", 60_000, 90, 0), ("PRODUCE", "app-5", 2_500, 5, 1), ("PRODUCE", "", 120_000, 7, 0)]
    rows += [("PRODUCE", "as offered", 60_000, 1_000, 9), ("FETCH", "poller", 500, 1_000, 900)]
    return pd.DataFrame(rows, columns=CLIENT_TIMEOUTS.fieldNames())


def pending() -> pd.DataFrame:
    at = pd.date_range("2026-01-01", periods=40, freq="s", tz="UTC")
    parts = [
        pd.DataFrame({"instance": name, "timeout_ms": timeout, "at": at, "pending": [n % 7 for n in range(40)]})
        for name in ("broker-1", "broker-2")
        for timeout in (_OWN, 30_000.0)
    ]
    return pd.concat(parts)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("replay")
    for name, table in {
        "replay": replayed(),
        "pending": pending(),
        "what_if": what_if(),
        "own_timeouts": own(),
        "client_timeouts": clients(),
    }.items():
        (where / name).mkdir()
        table.to_parquet(where / name / "part.parquet")
    settings = [{"tick_ms": 1.0, "wheel_size": 20, "timeout_ms": None}, {"tick_ms": 10.0, "wheel_size": 20}]
    (where / MARKER).write_text(json.dumps({"tool": "abeyant", "settings": settings}), encoding="utf-8")
    write_replay_report(where, where / "report.html")
    return where / "report.html"


def test_a_terminal_shows_several_brokers_together(report: Path) -> None:
    answer, shown = (_summary(report.parent, wheels=wheels) for wheels in (False, True))
    assert shown.startswith(f"{answer}\n\n")
    assert "buckets" not in answer, "nobody can set a wheel in Kafka"
    head, _, columns, first, *_ = shown.removeprefix(f"{answer}\n\n").splitlines()
    assert head == "2 instances together; each alone is in the table `replay` and on the page"
    assert columns.split() == [
        "tick",
        "ms",
        "buckets",
        "time-out",
        "ms",
        "expired",
        "most",
        "pending",
        "cascades",
        "wake-ups",
    ]
    assert first.split() == ["1", "20", "own", "120", "12", "1,600", "2,000"]


def test_the_settings_are_a_table(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert "{&quot;" not in text
    assert '<dt>settings</dt><dd><div class="wide"><table' in text


def test_it_comes_to_sentences(report: Path) -> None:
    said = [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in conclusions(replayed(), what_if(), own())]
    assert said == [
        "PRODUCE: the shortest time-out tried under which at most 1 % expire is 1 min (0 % to 0.50 %). Today's "
        "time-outs: median 30 s, from 1.5 s to 30 s; those that expired had 1.5 s to 2.5 s. The setting is the "
        "producer's request.timeout.ms (default 30 s); delivery.timeout.ms must be at least that plus linger.ms.",
        "With their own time-outs, 120 of 2,000 operations expire.",
        "With a time-out of 30 s, 80 to 120 of 2,000 operations expire (40 are unknown, since they expired sooner in "
        "the log).",
        "Of the wheels tried, a tick of 100 ms with 20 buckets wakes the driver least: 500 wake-ups, 75 % fewer than "
        "Kafka's tick of 1 ms with 20 buckets (2,000). Operations then expire up to 99 ms late, not 0.99 ms.",
        "At Kafka's tick, 512 buckets cascade least: 200 cascades, 87.5 % fewer than Kafka's tick of 1 ms with 20 "
        "buckets (1,600), in 64.0 KiB in place of 2.5 KiB of memory.",
    ]
    whom = [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in time_out_sentences(what_if(), own(), clients())]
    assert whom[1:] == [
        "PRODUCE: 6 clients have a shorter one today: app-5 (2 s to 2.5 s; 6 of 15 operations expired); app-4 "
        "(1.9 s; 4 of 10 operations expired); app-3 (1.8 s; 3 of 10 operations expired); app-2 (1.7 s; 2 of 10 "
        "operations expired); and 2 more, in the table client_timeouts.",
        'PRODUCE: 1 client has a longer one today: "" (2 min; 0 of 7 operations expired).',
    ]
    text = report.read_text(encoding="utf-8")
    assert all(escaped(sentence) in text.replace("\N{NO-BREAK SPACE}", " ") for sentence in whom)
    assert "80\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}120</td>" in text, "of the wheels, too, what is unknown is a band"


def test_no_time_out_is_advised_under_which_more_expire_than_today() -> None:
    shares = ["expired_share", "expired_share_most"]
    better = what_if()
    better[shares] /= 20
    better.loc[better["timeout_ms"] == 1_000, shares] *= 2  # 0.6 %, which are few, but today it is 0.3 %
    said = [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in conclusions(replayed(), better, own())]
    assert said[0].startswith("PRODUCE: the shortest time-out tried under which no more expire than today is 30 s (0.1")
    short = own().assign(median_ms=1)  # more than 1 % expire today
    assert "at most 1 % expire" in conclusions(replayed(), what_if(), short)[0].replace("\N{NO-BREAK SPACE}", " ")


def test_without_a_better_wheel_or_an_end_it_says_so() -> None:
    kafkas = replayed().query("tick_ms == 1 and wheel_size == 20")
    short = what_if().query("timeout_ms <= 30_000")
    said = [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in conclusions(kafkas, short, own().head(0))]
    assert "No wheel tried wakes or cascades less than Kafka's tick of 1 ms with 20 buckets." in said
    assert said[0].startswith(
        "PRODUCE: even with a time-out of 30 s, the longest tried, 2 % to 6 % expire. The setting is "
    )
    assert conclusions(kafkas.head(0), short.head(0), own()) == ["Nothing was replayed."]
    first = conclusions(kafkas.assign(left_out=7), short, own())[1]
    assert first.endswith("; 14 without a start, time-out or known end, or from before 1970, are left out.")


def test_of_long_polls_alone_no_time_out_is_advised() -> None:
    polls = own().assign(kind="FETCH", least_ms=500, median_ms=500, most_ms=500)
    said = conclusions(replayed(), what_if().query("kind == 'FETCH'"), polls)
    assert said[0].replace("\N{NO-BREAK SPACE}", " ") == (
        "FETCH: a long poll that expires is no error, so no time-out has to change. Today's time-outs: 500 ms. The "
        "setting is the consumer's fetch.max.wait.ms (default 500 ms), or a follower's replica.fetch.wait.max.ms."
    )


@pytest.mark.slow
@pytest.mark.skipif(_BROWSER is None, reason="no browser is installed")
def test_all_of_it_can_be_read_and_each_broker_and_kind_has_a_row_with_units(report: Path) -> None:
    assert _BROWSER is not None
    titles = """[...document.querySelectorAll('.plot')].map(plot =>
      [plot._fullLayout.xaxis.title.text, ...plot._fullLayout.annotations.map(one => one.text)])"""
    ticks = "[...document.querySelectorAll('#plot-what-if .ytick text')].map(tick => tick.textContent)"
    lines = "document.getElementById('plot-what-if')._fullData.filter(t => t.name === 'PRODUCE' && t.mode === {mode!r})"
    known = f"Array.from(({lines.format(mode='lines+markers')})[0].y, y => Number.isFinite(y) ? y : null)"
    with browse(_BROWSER) as page:
        for scheme, width in (("light", 1100), ("dark", 1100), ("light", 400), ("dark", 400)):
            page.show(width=width, scheme=scheme)
            page.open(report)
            assert lasting_faults(page) == [], (scheme, width)
        brokers = [f"<b>broker-{n}</b>  at most 6 pending at once" for n in (1, 2)]
        today = "; today median 30\N{NO-BREAK SPACE}s"
        produce, poll = f"<b>PRODUCE</b>  share that expires{today}", "<b>FETCH</b>  share that expires"
        across = "time-out (logarithmic)"
        said = [[one.replace("<br>", "  ") for one in plot] for plot in page.run(titles)]  # folded: 400 px
        assert said == [[across, produce], [across, poll], ["time (UTC)", *brokers]]
        marks = "document.getElementById('plot-what-if')._fullData.filter(t => t.line?.dash === 'dash')"
        assert page.run(f"{marks}.map(t => Array.from(t.x))") == [[30_000, 30_000]]
        assert all(tick.endswith("%") for tick in page.run(ticks))
        values: list[Any] = page.run(known)
        assert values == [0.9, 0.06, None, None], "no line where the share is not known"
        assert page.complaints == []


def written(folder: Path, tables: dict[str, pd.DataFrame]) -> Path:
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        table.to_parquet(folder / name / "part.parquet")
    write_replay_report(folder, folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize(("tenants", "note"), [(24, ""), (25, "only in the tables: 1 more")])
def test_of_many_instances_the_page_says_how_many_it_leaves_out(tmp_path: Path, tenants: int, note: str) -> None:
    one = replayed().query("instance == 'broker-1'")
    rows = pd.concat([one.assign(instance=f"tenant-{number}") for number in range(tenants)])
    page = written(
        tmp_path, {"replay": rows, "pending": pending(), "what_if": what_if(), "own_timeouts": own()}
    ).read_text(encoding="utf-8")
    (said,) = re.findall(r"only in the tables[^<]*|$", page)[:1]
    assert said == note


@pytest.mark.slow
@pytest.mark.skipif(_BROWSER is None, reason="no browser is installed")
def test_long_names_and_many_decades_find_room(tmp_path: Path) -> None:
    assert _BROWSER is not None
    long = {"broker-2": "broker-2-" + "long" * 1_000}
    ladder = what_if().query("timeout_ms == 10")
    tables = {
        "replay": replayed(),
        "pending": pending(),
        "own_timeouts": own(),
        "what_if": pd.concat([what_if(), ladder.assign(timeout_ms=1), ladder.assign(timeout_ms=86_400_000)]),
    }
    report = written(tmp_path, {name: table.replace({"instance": long}) for name, table in tables.items()})
    with browse(_BROWSER) as page:
        for width in (400, 740, 1100):
            page.show(width=width)
            page.open(report)
            clipped = "clipped by its plot: broker-2-long"  # beyond the edge of its own row, where the glass is narrow
            faults = [one for one in lasting_faults(page) if not one.startswith(("clipped by its plot: at", clipped))]
            assert faults == [], width


def test_times_that_nanoseconds_cannot_hold_keep_their_places_on_the_axis() -> None:
    times = np.array(["0001-01-02", "1969-12-31T23:59:59.999", "9999-12-30"], "datetime64[us]")
    assert milliseconds(pd.Series(times)).tolist() == [-62_135_510_400_000, -1, 253_402_128_000_000]
