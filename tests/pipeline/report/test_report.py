"""The report as text: what it says, that a log never gets out of its quotes, and that little data is no crash."""

from __future__ import annotations

import base64
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from abeyant.errors import AbeyantError
from abeyant.pages.formatting import duration, escaped, label, percent, shortened, tick_values
from abeyant.pages.style import EXPIRED
from abeyant.pipeline.report.analysis import ALL, COLUMNS, MOST_SCOPES, Analysis, ReportError, read_analysis
from abeyant.pipeline.report.headline import findings, headline
from abeyant.pipeline.report.kinds import colours, is_poll
from abeyant.pipeline.report.page import write_report
from abeyant.pipeline.report.steps import thinned, total
from abeyant.pipeline.report.tables import incidents as table_of_incidents
from abeyant.pipeline.request_log.line import NOT_A_REQUEST
from abeyant.pipeline.results.directory import MARKER
from pipeline.report import samples

Tables = dict[str, pd.DataFrame]


class Outline(HTMLParser):
    """What a browser would make of the page: its elements, its words, and the data of its figures."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.figures = ""
        self._inside: list[str] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(dict(attrs).get("id") or tag)

    def handle_endtag(self, tag: str) -> None:
        self._inside.pop()

    def handle_data(self, data: str) -> None:
        where = self._inside[-1] if self._inside else ""
        if where == "figures":
            self.figures += data
        elif where not in {"script", "style"}:
            self.words += data

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]


@pytest.fixture(scope="module")
def sample() -> Tables:
    return samples.tables(samples.operations())


def report(where: Path, tables: Tables) -> Outline:
    written = samples.write(where / "tables", tables)
    write_report(written, where / "report.html")
    return Outline(where / "report.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, sample: Tables) -> Outline:
    """The report of the sample: writing one takes two seconds."""
    return report(tmp_path_factory.mktemp("report"), sample)


def analysis(tables: Tables) -> Analysis:
    return Analysis(tables=tables)


def test_it_says_the_counts_of_the_tables(page: Outline, sample: Tables) -> None:
    requests = sample["requests_by_kind"]
    assert f"requests{requests['requests'].sum():,}{requests['waited'].sum():,} waited" in page.words
    failed = sample["summary"].query("instance == '*' and kind == 'PRODUCE'")["expired"].iloc[0]
    assert headline(analysis(sample)).startswith(f"{failed:,} PRODUCE requests expired, ")
    everything = sample["summary"][sample["summary"]["instance"] == ALL]
    for row in everything.to_dict("records"):
        assert f"{row['operations']:,}{row['waited']:,}{row['completed']:,}{row['expired']:,}" in page.words
    assert "3 lines could not be read" in page.words


@pytest.mark.parametrize(
    ("troubles", "said"),
    [
        (["waited"], "1 burst of long waits"),
        (["paused"], "1 burst of late fetches"),
        (["sent", "paused"], "of trouble"),
    ],
)
def test_the_headline_says_what_the_trouble_was(sample: Tables, troubles: list[str], said: str) -> None:
    incidents = pd.concat([sample["incidents"].head(1).assign(trouble=trouble, expired=0) for trouble in troubles])
    summary = sample["summary"].assign(expired=0)
    found = headline(analysis({**sample, "incidents": incidents.reset_index(drop=True), "summary": summary}))
    assert said in found
    assert found.endswith("nothing expired that matters")


def test_an_incident_shows_its_trouble_and_its_suspect(sample: Tables) -> None:
    incidents = sample["incidents"].sort_values(["first", "kind", "trouble"], kind="stable").reset_index(drop=True)
    incidents.loc[0, "trouble"] = "paused"
    row = {"incident": 1, "suspect": "client <report>", "kind": "seldom_polls", "evidence": 'it said "no"'}
    times = {"first": incidents["first"][0], "last": incidents["last"][0]}
    named = pd.DataFrame(
        [row | {"confidence": 0.5, **times}, row | {"suspect": "client b", "confidence": 0.7, **times}]
    )
    found = table_of_incidents(analysis({**sample, "incidents": incidents, "suspects": named}), ALL)
    assert "came late" in found
    assert "client\N{NO-BREAK SPACE}b" in found
    assert ">it said &quot;no&quot; (confidence 0.70)<" in found, "not under the mouse: a phone has none"
    assert re.findall("<th [^>]*>([^<]*)", found)[:3] == ["when (UTC)", "suspect", "expired"]
    assert "report" not in found, "the likeliest alone"


@pytest.mark.slow  # one more report
def test_lines_of_other_loggers_bury_no_rejected_line(tmp_path: Path, sample: Tables) -> None:
    info = [("1", "a.log", number, NOT_A_REQUEST, "[10:00] INFO started") for number in range(1, 101)]
    bad = [("1", "b.log", number, f"not valid JSON: at character {number}", "{") for number in (1, 2)]
    late = [("1", "c.log", 7, "no timestamp in front of the request", "Completed request:")]
    rows = pd.DataFrame(info + bad + late, columns=list(COLUMNS["rejected"]))
    words = report(tmp_path, sample | {"rejected": rows}).words
    assert "3 lines could not be read: which, and why." in words
    assert "100 lines without a completed request: the first." in words
    counts = words[words.index("Lines that could not be read") :]
    assert "not valid JSON2no timestamp in front of the request1not a completed request100" in counts
    assert counts.index("not valid JSON: at character 1") < counts.index("[10:00] INFO started")


def test_it_says_how_it_was_made(page: Outline) -> None:
    assert "abeyant analyze 'logs/<b>*.log' --out result" in page.words
    assert "logs/<script>alert(7)</script>.log67,890" in page.words
    assert "Read as Strimzi's layout, in docker's json-file." in page.words


def test_rejected_lines_come_with_the_broker_s_log_settings(page: Outline, tmp_path: Path, sample: Tables) -> None:
    setting = "--add-config kafka.request.logger=DEBUG"
    assert setting in page.words
    none = sample | {"rejected": sample["rejected"].head(0)}
    assert setting not in report(tmp_path, none).words


@pytest.mark.slow  # one more report
def test_no_place_of_the_machine_is_in_it(tmp_path: Path, sample: Tables) -> None:
    written = samples.write(tmp_path / "tables", sample)
    made = json.loads((written / MARKER).read_text(encoding="utf-8"))
    made["command"] = "abeyant analyze /home/jane/logs '/var/log/k*/kafka.log' --out /tmp/x/result --master local[2]"
    for entry, broker in zip(made["inputs"], ("broker-1", "broker-2"), strict=True):
        entry["file"] = f"/home/jane/logs/{broker}/kafka-request.log"
    (written / MARKER).write_text(json.dumps(made), encoding="utf-8")
    write_report(written, tmp_path / "report.html")
    page = Outline(tmp_path / "report.html")
    assert "abeyant analyze logs kafka.log --out result --master 'local[2]'" in page.words
    assert "broker-1/kafka-request.log12,345" in page.words
    assert not [place for place in ("/home", "/var", "/tmp", str(tmp_path)) if place in page.words]
    assert "".join(sorted(sample)) in page.words, "the tables, a line each"


def test_every_figure_has_a_variant_for_all_and_for_each_instance(page: Outline) -> None:
    figures = json.loads(page.figures)
    assert set(figures) == {
        "plot-opening",
        "plot-pending",
        "plot-waits",
        "plot-timeout",
    }
    for variants in figures.values():
        assert list(variants) == ["0", "1", "2", "3"]
        assert all(variant["data"] for variant in variants.values())


def test_it_opens_with_the_lag_of_each_broker_and_the_incidents(page: Outline, sample: Tables) -> None:
    opening = json.loads(page.figures)["plot-opening"]["0"]
    lines = {trace["name"]: trace for trace in opening["data"]}
    assert list(lines) == ["broker 1", "broker 2", "broker 3"]
    assert max(values(lines["broker 2"]["y"])) == 42_000
    assert max(values(lines["broker 1"]["y"])) == 4
    assert len(opening["layout"]["shapes"]) == len(sample["incidents"])
    assert "at most 42\N{NO-BREAK SPACE}s from 1" in opening["layout"]["meta"]["rows"][1]["title"]
    assert "longest lag42\N{NO-BREAK SPACE}sbroker 2, at " in page.words
    assert "suspectbroker <2>of 1 incident; confidence 0.95" in page.words
    first = page.words.index("requests"), page.words.index("IncidentsWhat waited")
    assert first[0] < page.words.index("longest lag") < page.words.index("Broker <2> stopped fetching.") < first[1]


@pytest.mark.slow  # one more report
def test_without_followers_it_opens_with_the_longest_waits(tmp_path: Path, sample: Tables) -> None:
    figures = json.loads(report(tmp_path, sample | {"lags": sample["lags"].head(0)}).figures)
    opening = figures["plot-opening"]
    assert [trace["name"] for trace in opening["0"]["data"]] == ["1", "2", "3"]
    assert [trace["name"] for trace in opening["2"]["data"]] == ["2"]
    rows = sample["waits_by_time"].query("instance == '2' and not kind.str.startswith('FETCH')")
    most = 10 ** ((rows["step"].max() + 1) / 10)
    assert max(values(opening["2"]["data"][0]["y"])) == pytest.approx(most)


def values(column: Any) -> Any:
    """Return a column of a figure, which may be packed."""
    if isinstance(column, dict):
        return np.frombuffer(base64.b64decode(column["bdata"]), column["dtype"])
    return column


def test_it_is_one_file_that_names_nothing_to_load(tmp_path: Path, sample: Tables) -> None:
    page = report(tmp_path, sample)
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "report.html"}
    assert not [found for found in page.elements if {"src", "srcset", "data", "action"} & found[1].keys()]
    elsewhere = {
        found[1]["href"] for found in page.elements if not (found[1].get("href") or "#").startswith(("#", "?"))
    }
    assert elsewhere == {"https://plotly.com/javascript/"}  # a credit to follow, not a thing to load
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_what_comes_from_a_log_stays_text(page: Outline) -> None:
    assert page.tags().count("script") == 5
    assert not {"img", "i", "iframe", "object", "link"} & set(page.tags())
    for key in samples.HOSTILE_KEYS[:4]:
        assert key in page.words
    for hostile in ("<script>alert", "</script><img", "<a href='javascript", "no time </script>"):
        assert hostile not in page.source


@pytest.mark.slow  # one more report
def test_kinds_and_instances_may_be_hostile_too(tmp_path: Path) -> None:
    tables = samples.tables(samples.operations(kinds=["PRODUCE", "FETCH_CONSUMER"]))
    for name, frame in tables.items():
        tables[name] = frame.replace({"PRODUCE": "<script>alert(5)</script>", "1": "</option><script>alert(6)//"})
    page = report(tmp_path, tables)
    assert page.tags().count("script") == 5
    assert "<script>alert(5)</script>" in page.words
    assert "</option><script>alert(6)//" in page.words


def test_nothing_at_all_is_a_page(tmp_path: Path, sample: Tables) -> None:
    page = report(tmp_path, {name: frame.head(0) for name, frame in sample.items()})
    assert "No request in this log" in page.words
    assert "every line of the log was read" in page.words
    assert all(variants == {"0": None} for variants in json.loads(page.figures).values())


@pytest.mark.slow  # one more report
def test_an_empty_table_without_its_schema_is_an_empty_table(tmp_path: Path, sample: Tables) -> None:
    written = samples.write(tmp_path / "tables", sample)
    (written / "rejected" / "part-00000.parquet").unlink()
    write_report(written, tmp_path / "report.html")
    assert "every line of the log was read" in Outline(tmp_path / "report.html").words


@pytest.mark.slow  # one more report
def test_a_log_in_which_nothing_waited(tmp_path: Path) -> None:
    done = samples.operations().assign(waited_ms=0.0, outcome="completed")
    tables = samples.tables(done)
    tables["pending_plot"] = tables["pending_plot"].assign(pending=0)
    page = report(tmp_path, tables)
    assert "and none of them waited" in page.words
    figures = json.loads(page.figures)
    assert figures["plot-pending"]["0"] is None
    assert figures["plot-waits"]["0"] is None


@pytest.mark.slow  # one more report
def test_a_log_in_which_nothing_expired(tmp_path: Path) -> None:
    done = samples.operations().assign(outcome="completed")
    page = report(tmp_path, samples.tables(done))
    assert "Nothing expired: every wait ended as its condition came true." in page.words
    assert "Nothing expired." in page.words
    figures = json.loads(page.figures)
    colours_used = [trace["marker"]["color"] for trace in figures["plot-waits"]["0"]["data"]]
    assert EXPIRED not in colours_used


def test_a_log_that_does_not_tell_how_waits_ended(sample: Tables) -> None:
    summary = sample["summary"]
    silent = summary.assign(unknown=summary["waited"], completed=0, expired=0, expired_share=math.nan)
    tables = sample | {"summary": silent, "incidents": sample["incidents"].head(0)}
    assert headline(analysis(tables)).endswith("the log does not show how they ended")
    assert not any("xpire" in sentence for sentence in findings(analysis(tables)))


def test_one_instance_leaves_nothing_to_choose(tmp_path: Path) -> None:
    page = report(tmp_path, samples.tables(samples.operations(instances=["broker-1"])))
    label, kinds = [attrs for tag, attrs in page.elements if tag == "label"][:2]
    assert "hidden" in label
    assert "hidden" not in kinds
    assert "The log of instance broker-1" in page.words


def test_of_very_many_instances_the_busiest_can_be_chosen(sample: Tables) -> None:
    names = [f"tenant-{i}" for i in range(MOST_SCOPES * 3)]
    requests = pd.DataFrame({"instance": names, "api": "PRODUCE", "requests": range(len(names)), "waited": 0})
    scopes = analysis(sample | {"requests_by_kind": requests}).scopes
    assert scopes == [ALL, *names[-MOST_SCOPES:]]


def test_without_rows_for_all_only_counts_are_added_up(sample: Tables) -> None:
    per = {name: frame for name, frame in sample.items() if "instance" in frame}
    parts = sample | {name: frame[frame["instance"] != ALL] for name, frame in per.items()}
    assert analysis(parts).within("timeout_curve", ALL).empty
    assert len(analysis(parts).within("waits", ALL)) == len(parts["waits"])
    assert analysis(parts).within("summary", "2").equals(analysis(sample).within("summary", "2"))


def test_rows_for_all_are_not_counted_twice(sample: Tables) -> None:
    requests = sample["requests_by_kind"]
    everything = requests.groupby("api", as_index=False)[["requests", "waited"]].sum().assign(instance=ALL)
    both = sample | {"requests_by_kind": pd.concat([requests, everything])}
    assert headline(analysis(both)) == headline(analysis(sample))
    assert analysis(both).instances == analysis(sample).instances


def test_step_functions_add_up_exactly() -> None:
    at = pd.to_datetime(["2026-01-01T00:00:00", "2026-01-01T00:00:02", "2026-01-01T00:00:05"], utc=True)
    one = pd.DataFrame({"instance": "1", "at": at, "pending": [2, 1, 0]})
    two = pd.DataFrame({"instance": "2", "at": at + pd.Timedelta(seconds=1), "pending": [7, 0, 4]})
    summed = total(pd.concat([two, one]))
    seconds = (summed["at"] - at[0]).dt.total_seconds()
    assert dict(zip(seconds, summed["pending"], strict=True)) == {0: 2, 1: 9, 2: 8, 3: 1, 5: 0, 6: 4}


def test_thinned_steps_keep_every_peak() -> None:
    at = pd.date_range("2026-01-01", periods=5_000, freq="10ms", tz="UTC")
    steps = pd.DataFrame({"at": at, "pending": [n % 7 for n in range(5_000)]})
    steps.loc[[1_234, 4_321], "pending"] = 900
    kept = thinned(steps, 300)
    assert 200 < len(kept) <= 300
    assert list(kept["pending"]).count(900) == 2
    assert kept["at"].is_monotonic_increasing
    assert kept["at"].iloc[-1] == at[-1]
    assert thinned(steps.head(300), 300).equals(steps.head(300))


@pytest.mark.slow
def test_a_page_has_at_most_two_megabytes(page: Outline, tmp_path: Path) -> None:
    many = samples.tables(samples.operations(instances=tuple("abcdefghijklmnop"), kinds=("PRODUCE",)))
    for one in (page, report(tmp_path, many)):
        assert len(one.source.encode()) <= 2_000_000


def test_an_incident_says_when_where_and_on_what(page: Outline, sample: Tables) -> None:
    rows = sample["incidents"]
    worst = rows.sort_values("expired").iloc[-1]
    assert worst["kind"] == "PRODUCE"
    assert worst["instances"] == ["1"]
    suspect = r"(broker\N{NO-BREAK SPACE}<2>broker <2> stopped fetching \(confidence 0.95\))?"
    assert re.search(rf"{worst['first']:%Y-%m-%d %H:%M:%S}PRODUCEwaited long{suspect}{worst['expired']}", page.words)
    links = [found[1]["href"] for found in page.elements if found[1].get("class") == "when"]
    assert (
        f"?from={int(worst['first'].timestamp())}&to={-int(-worst['last'].timestamp() // 1)}#pending-over-time" in links
    )
    everywhere = json.loads(page.figures)["plot-pending"]
    assert len(everywhere["0"]["layout"]["shapes"]) == len(rows)
    assert len(everywhere["2"]["layout"].get("shapes", [])) == sum("2" in struck for struck in rows["instances"])


@pytest.mark.slow
def test_it_replaces_an_older_report_whole_or_not_at_all(
    tmp_path: Path, sample: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = tmp_path / "deep" / "report.html"
    written = samples.write(tmp_path / "tables", sample)
    write_report(written, destination)
    before = destination.read_bytes()
    write_report(written, destination)
    assert destination.read_bytes() == before

    def full(self: Path, text: str, **_: object) -> int:
        self.write_bytes(text[:100].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(written, destination)
    assert destination.read_bytes() == before
    assert list(destination.parent.iterdir()) == [destination]


def test_what_is_no_analysis_is_refused_in_one_line(tmp_path: Path, sample: Tables) -> None:
    assert issubclass(ReportError, AbeyantError)
    with pytest.raises(ReportError, match="no such directory of tables"):
        read_analysis(tmp_path / "absent")
    written = samples.write(tmp_path / "tables", sample)
    (written / "waits" / "part-00000.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ReportError, match=r"table 'waits' .* cannot be read"):
        read_analysis(written)
    sample["waits"].drop(columns="low_ms").to_parquet(written / "waits" / "part-00000.parquet")
    with pytest.raises(ReportError, match=r"table 'waits' .* lacks low_ms"):
        read_analysis(written)
    (written / "waits").rename(written / "elsewhere")
    with pytest.raises(ReportError, match="no table 'waits'"):
        read_analysis(written)


def test_the_tables_are_those_that_the_analysis_writes() -> None:
    from abeyant.pipeline.schemas import ALL_INSTANCES, TABLES

    assert ALL == ALL_INSTANCES
    for name, columns in COLUMNS.items():
        assert set(columns) <= set(TABLES[name].names), name


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (0.001, "1 µs"),
        (0.0042, "4.2 µs"),
        (0.417, "0.42 ms"),
        (30, "30 ms"),
        (512.4, "512 ms"),
        (999.66, "1 s"),
        (59_990, "1 min"),
        (1_500, "1.5 s"),
        (30_000, "30 s"),
        (90_500, "1 min 30 s"),
        (3_600_000, "1 h"),
        (100 * 86_400_000, "100 d"),
        (math.nan, "\N{EN DASH}"),
    ],
)
def test_a_duration_is_said_in_the_unit_that_fits(ms: float, said: str) -> None:
    assert duration(ms).replace("\N{NO-BREAK SPACE}", " ") == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (1, "1"),
        (0.5, "50 %"),
        (0.1234, "12.3 %"),
        (0.00654, "0.65 %"),
        (1e-7, "< 0.01 %"),
        (0.999999, "> 9"),
    ],
)
def test_a_share_never_rounds_to_none_or_all(share: float, said: str) -> None:
    assert percent(share).replace("\N{NO-BREAK SPACE}", " ").startswith(said)


def test_an_axis_has_enough_ticks_and_no_crowd() -> None:
    for low, high in [
        (0.1, 40_000.0),
        (3.0, 30.0),
        (100.0, 1_000.0),
        (1.0, 1e9),
        (0.1, 3e6),
        (20_000.0, 300_000.0),
    ]:
        values, texts = tick_values(low, high)
        assert 3 <= len(values) <= 13, (low, high, texts)
        assert len(set(texts)) == len(texts)
        assert values == sorted(values)
    _, texts = tick_values(1.0, 1e12)
    assert "24 h" in texts
    assert "10 h" not in texts, "on the axis of a page of 400 px the two would overlap"


def test_labels_keep_both_ends_and_lose_what_could_act() -> None:
    assert shortened("a" * 80 + "-partition-17").endswith("partition-17")
    assert len(shortened("x" * 1_000)) == 60
    assert escaped("a\x00b\N{RIGHT-TO-LEFT OVERRIDE}<'\">") == "a\ufffdb\ufffd&lt;&#x27;&quot;&gt;"
    assert escaped("a\N{LINE SEPARATOR}b\N{PARAGRAPH SEPARATOR}") == "a\ufffdb\ufffd"
    assert "%{" not in label("%{customdata[0]} <b>")
    assert "<" not in label("%{customdata[0]} <b>")
    assert (
        label("\N{HEBREW LETTER ALEF}") == "\N{FIRST STRONG ISOLATE}\N{HEBREW LETTER ALEF}\N{POP DIRECTIONAL ISOLATE}"
    )
    assert (shortened(""), shortened(" ")) == ('""', '" "'), "a blank name can be seen"


@pytest.mark.slow  # one more report
def test_figures_leave_out_the_least_of_many_kinds(tmp_path: Path) -> None:
    done = samples.operations(instances=["1"])
    one = done[done["kind"] == "SYNC_GROUP"]
    others = [one.assign(kind=f"KIND_{i:02}", waited_ms=one["waited_ms"] * i) for i in range(1, 11)]
    tables = samples.tables(pd.concat([done, *others]))
    found = analysis(tables)
    assert found.drawn == [*samples.KINDS, "KIND_10", "KIND_09", "KIND_08"]
    page = report(tmp_path, tables)
    assert "7 other kinds that waited" in page.words
    for plot, variants in json.loads(page.figures).items():
        if plot == "plot-opening":
            continue  # it is of brokers
        assert "KIND_08" in str(variants) or "expired" in str(variants)
        assert "KIND_07" not in str(variants)


def test_only_kafkas_fetches_are_long_polls() -> None:
    polls = {"FETCH", "FETCH_CONSUMER", "FETCH_FOLLOWER", "FETCH_RAFT", "SHARE_FETCH"}
    others = {"OFFSET_FETCH", "PREFETCH", "FETCH_PRICES", "fetch", "", None}
    assert {kind for kind in polls | others if is_poll(kind)} == polls


def test_kinds_have_colours_of_their_own() -> None:
    chosen = colours(["PRODUCE", "FETCH_CONSUMER", "JOIN_GROUP", "A", "B"])
    assert len(set(chosen.values())) == 5
    assert colours(["PRODUCE"])["PRODUCE"] == chosen["PRODUCE"]
    assert colours(["A", "HEARTBEAT"])["A"] == colours(["B", "PRODUCE", "A"])["A"], "the same in every report"
    assert len(colours([f"KIND_{i}" for i in range(30)])) == 30
