"""`abeyant resolve`: anybody's tables, mapped, resolved and written whole; refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from abeyant.cli import main
from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.summary_text import outcomes_json, print_outcomes
from abeyant.pipeline.report.outcomes import read_outcomes
from abeyant.pipeline.results.directory import MARKER
from abeyant.pipeline.schemas import EVENTS, OPERATIONS, SchemaError
from abeyant.pipeline.sources.tables import events_from, operations_from
from abeyant.pipeline.spark.columns import check_table
from pages.page_checks import check_page
from pipeline.orders import MAPPING, write_orders


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    return write_orders(tmp_path)


def test_two_csv_files(
    spark: SparkSession, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    tables = [files[0], str(tmp_path / "pay*.csv")]  # a name in which there are letters of a glob, and a glob
    assert main(["resolve", *tables, "--out", str(out), *MAPPING]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("3 operations: 1 completed, 2 expired (66.7 %)\n")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "operations 3 2 66.67 15 min 15 min 15 min 15 min" in lines, "percentiles, to within 0.5 %"
    assert lines[lines.index("expired") + 1 :][:2] == ["2", "3"], "no key expires most"
    assert f"The 2 expired: {out}/outcomes, outcome = 'expired'" in lines
    unread = "1 invalid operations: start is not a timestamp"
    assert {"1 invalid operations: duplicate op_id", unread} < set(lines)
    assert f"All of them as CSV: abeyant expired {out} --csv > expired.csv" in lines
    assert shown.splitlines()[-1] == f"Report: {out}/report.html"
    outcomes = {row["op_id"]: row for row in pq.read_table(out / "outcomes").to_pylist()}
    assert {op: row["outcome"] for op, row in outcomes.items()} == {"1": "completed", "2": "expired", "3": "expired"}
    assert outcomes["1"]["waited_ms"] == outcomes["2"]["waited_ms"] == 900_000.0
    assert pq.read_table(out / "invalid_events")["reason"].to_pylist() == ["no at"]
    assert json.loads((out / MARKER).read_text())["completed"] == 1
    check_page(out / "report.html", ["plot-waits"])
    found = json.loads(json.dumps(outcomes_json(read_outcomes(out)), allow_nan=False))
    assert found["headline"] == shown.splitlines()[0]
    assert [(row["operations"], row["expired"]) for row in found["summary"]] == [(3, 2)]
    assert {"name": "expired", "value": "2", "note": "66.7 %"} in found["tiles"]
    page = (out / "report.html").read_text()
    assert ("Most expired on" in page, "Expired, the first five" in page) == (False, True), "both keys have one"
    assert main(["expired", str(out), "--csv"]) == 0
    ids = [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()]
    assert ids == [["deadline", "op_id"], *(["2026-01-01T10:15:00.000000Z", op_id] for op_id in "23")]


def test_no_key_in_common_is_said_with_a_pair_and_the_mend(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worst of wrong answers: all expire, and nothing looks wrong."""
    orders, payments = tmp_path / "orders.csv", tmp_path / "payments.csv"
    time = "2026-01-01T10:00:00Z"
    orders.write_text("order_id,ordered_at\n" + "".join(f"{n:04},{time}\n" for n in range(12)))
    payments.write_text("order_id,paid_at\n" + "".join(f"{n},{time}\n" for n in range(12)))
    out = tmp_path / "out"
    assert main(["resolve", str(orders), str(payments), "--out", str(out), *MAPPING, "--json"]) == 0
    said = (
        "no key of the 12 operations occurs among the events, so all expired: operations have key '0000', events have "
        "key '0', which differ in zeros in front; pad one column or strip the other"
    )
    assert json.loads(capsys.readouterr().out)["result"]["no_common_key"].startswith(said)
    found = read_outcomes(out)
    assert found.warning.startswith("N" + said[1:])
    print_outcomes(found)
    assert said[1:] in capsys.readouterr().out
    assert "which differ in zeros in front" in (out / "report.html").read_text()


ENGINES = pytest.mark.parametrize("engine", ["tables", "spark"])


@ENGINES
@pytest.mark.slow
def test_an_exclusive_deadline_and_a_result_that_is_replaced(
    engine: str,
    spark: SparkSession,
    files: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    exclusive = [*MAPPING, "--deadline", "exclusive", "--engine", engine]
    assert main(["resolve", *files, "--out", str(out), *exclusive]) == 0
    assert capsys.readouterr().out.startswith("3 operations: 0 completed, 3 expired (100 %)\n")
    assert set(pq.read_table(out / "outcomes")["outcome"].to_pylist()) == {"expired"}
    with pytest.raises(SystemExit):
        main(["resolve", *files, "--out", str(out), "--operation", "nonsense"])
    assert main(["resolve", *files, "--out", str(out), *MAPPING, "--engine", engine]) == 2


@ENGINES
@pytest.mark.slow
def test_a_table_of_rejected_rows_only_is_no_success(
    engine: str, spark: SparkSession, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["resolve", *files, "--out", str(out), *MAPPING, "--event", "at=CAST(null AS timestamp)"]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("3 operations: 0 completed, 3 expired"), "the result is written, and shown"
    number = pq.read_table(out / "invalid_events").num_rows
    assert shown.err.splitlines()[-1] == (
        f"abeyant: error: events: all {number} rows were rejected: no at, as for key 1; check the column's name, and "
        f"whether an earlier conversion made values null. The result is complete; the rows are in {out}/invalid_events"
    )
    late = [*MAPPING, "--operation", "timeout_ms=-5", "--overwrite", "--json", "--engine", engine]
    assert main(["resolve", *files, "--out", str(out), *late]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["result"]["completed"] == 0
    number = pq.read_table(out / "invalid_operations").num_rows
    assert f"error: operations: all {number} rows were rejected: timeout_ms is negative: -5; check" in shown.err
    out = tmp_path / "other"
    constant = [*MAPPING, "--operation", "timeout='2 fortnights'", "--engine", engine]
    assert main(["resolve", *files, "--out", str(out), *constant]) == 2
    assert "operations: timeout is not a duration such as '15 min': 2 fortnights, in every" in capsys.readouterr().err
    assert not out.exists(), "a constant is an argument: nothing runs"


@pytest.mark.slow  # Spark plans a query for each
def test_what_is_refused_is_one_line(
    spark: SparkSession, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out"), "--engine", "spark"]

    def refusal(*arguments: str) -> str:
        assert main(["resolve", *arguments, *out, "--quiet"]) == 2
        assert not (tmp_path / "out").exists()
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line

    assert "no such file or directory: nowhere.csv" in refusal("nowhere.csv", files[1])
    assert refusal(*files).endswith(
        "operations: no column 'op_id', expected string (columns: order_id, ordered_at); "
        "--operation COLUMN=SQL maps a column\n"
    )
    assert "operations: cannot map the unknown column 'id'" in refusal(*files, "--operation", "id=order_id")
    assert "cannot be resolved" in refusal(*files, "--operation", "op_id=nowhere")
    two = "watches=transform(array('a', 'b'), key -> struct(key, 1L AS required))"
    served = refusal(*files, *MAPPING, "--operation", two, "--serves", "oldest")  # in a worker, by its first row
    assert served.startswith("abeyant: error: operations: '")
    assert "' has several watches with role 'complete', which serves='oldest' excludes" in served
    assert "operations: [PARSE_SYNTAX_ERROR]" in refusal(*files, "--operation", "op_id=lower(")
    broken, of_nothing, hidden, timed = (
        tmp_path / name for name in ("broken.parquet", "nothing.parquet", "_hidden.csv", "at 12:30.csv")
    )
    text = tmp_path / "orders.txt"
    text.write_bytes(Path(files[0]).read_bytes())
    assert f"{text} is not a Parquet file, or is truncated: name its format by --format" in refusal(str(text), files[1])
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert "operations: no column 'op_id', expected string (columns: none)" in refusal(str(empty), files[1])
    broken.write_bytes(b"PAR1, and then nothing")
    of_nothing.touch()
    for copied in (hidden, timed):
        copied.write_bytes(Path(files[0]).read_bytes())
    assert f": {broken} is not a Parquet file, or is truncated: " in refusal(str(broken), files[1])
    refused = refusal(str(of_nothing), files[1])
    no_columns, no_footer = ": found no Parquet file with columns", " is not a Parquet file"  # the latter: Spark 4.2
    assert f": {of_nothing}{no_columns}" in refused or f": {of_nothing}{no_footer}" in refused
    assert f"error: {hidden}: found no CSV file with columns" in refusal(str(hidden), files[1])
    assert "cannot read names or folders with a colon" in refusal(str(timed), files[1], *MAPPING)


def test_numbers_are_never_taken_for_times(spark: SparkSession) -> None:
    table = spark.sql("SELECT 1 AS op_id, 'k' AS key, 1767225600 AS start, 5 AS timeout_ms")
    with pytest.raises(SchemaError, match="operations: column 'start' is int, expected timestamp"):
        operations_from(table)
    good = operations_from(table, {"start": "timestamp_seconds(start)"})
    check_table(good, OPERATIONS, "operations")
    row = good.collect()[0]
    assert (row.instance, row.op_id, row.condition, row.watches) == ("", "1", "all", [("k", 1)])


def test_a_key_that_is_none_is_refused_by_its_own_name(spark: SparkSession) -> None:
    """Not as the watches that were made of it, which no table of the user's has."""
    columns = "SELECT 'a' AS op_id, now() AS start, 5 AS timeout_ms"
    with pytest.raises(SchemaError, match="operations: column 'required' is date, expected bigint; --oper"):
        operations_from(spark.sql(f"{columns}, 'k' AS key, current_date() AS required"))
    with pytest.raises(SchemaError, match=r"no column 'key', expected string \(columns: op_id, start, timeout_ms\)"):
        operations_from(spark.sql(columns))


@pytest.mark.slow
def test_columns_are_known_by_their_names_in_any_case(either: SparkSession) -> None:
    """Unless the session tells `Required` from `required`: then there is none, and the default holds."""
    table = either.sql(
        "SELECT 'a' AS Op_Id, 'k' AS KEY, '5' AS Required, 'order' AS Kind, 'i' AS Instance, 'any' AS Condition, "
        "'2026-03-02 12:00:00' AS START, '10' AS timeout_MS"
    )
    happened = either.sql("SELECT 'k' AS Key, '2026-03-02 12:00:00' AS AT, '3' AS Progress, 'i' AS INSTANCE")
    row, event = operations_from(table).collect()[0], events_from(happened).collect()[0]
    assert (row.instance, row.op_id, row.kind, row.condition, row.timeout_ms) == ("i", "a", "order", "any", 10)
    assert (row.watches, row.start) == ([("k", 5)], event.at)
    assert (event.instance, event.key, event.progress) == ("i", "k", 3)
    assert operations_from(table, {"kind": "upper(kind)"}).collect()[0].kind == "ORDER"
    with pytest.raises(SchemaError, match=r"2 columns 'kind' \(Kind, kind\)"):
        operations_from(table.selectExpr("*", "'refund' AS kind"))
    either.conf.set("spark.sql.caseSensitive", "true")
    try:
        told = events_from(either.sql("SELECT 'k' AS key, timestamp '2026-03-02 12:00:00' AS at, 3L AS Progress"))
        assert told.collect()[0].progress == 1
    finally:
        either.conf.unset("spark.sql.caseSensitive")


def test_a_table_that_has_it_all_stays_as_it_is(spark: SparkSession) -> None:
    events = spark.createDataFrame([("i", "k", None, 3)], EVENTS)
    assert events_from(events).collect() == events.collect()
    with pytest.raises(AbeyantError, match="events: cannot map the unknown column 'watches'"):
        events_from(events, {"watches": "1"})


@pytest.mark.slow
def test_operations_are_searched_for_rejected_ones_unless_each_has_an_outcome(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(name: str, columns: dict[str, Any]) -> str:
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        return str(tmp_path / f"{name}.parquet")

    def resolved(name: str, ids: list[str | None], *options: str) -> tuple[list[str], list[str], list[str]]:
        """Return the ids with an outcome, those rejected, and the columns of the rejected."""
        rows = len(ids)
        start = pa.array([60_000_000] * rows, pa.timestamp("us", "UTC"))
        watches = pa.array([[{"key": "a", "required": 1}]] * rows)
        columns = {"instance": ["one"] * rows, "op_id": ids, "kind": ["ORDER"] * rows, "start": start}
        operations = put(name, {**columns, "timeout_ms": [1000] * rows, "watches": watches})
        out = tmp_path / f"out-{name}"
        assert main(["resolve", operations, events, "--out", str(out), "--engine", "spark", *options]) == 0
        outcomes, rejected = (pq.read_table(out / name) for name in ("outcomes", "invalid_operations"))
        return outcomes["op_id"].to_pylist(), rejected["op_id"].to_pylist(), rejected.column_names

    at = pa.array([60_500_000, 60_100_000], pa.timestamp("us", "UTC"))
    events = put("events", {"instance": ["one"] * 2, "key": ["a", "b"], "progress": [1, 9], "at": at})
    searched: list[Any] = []
    write = DataFrameWriter.parquet

    def spied(writer: DataFrameWriter, path: str, *options: Any) -> None:
        if path.endswith("invalid_operations"):
            searched.append("FileScan" in writer._df._jdf.queryExecution().executedPlan().toString())
        write(writer, path, *options)

    monkeypatch.setattr(DataFrameWriter, "parquet", spied)
    outcomes, rejected, columns = resolved("fine", ["1", "2"])
    assert (sorted(outcomes), rejected, searched) == (["1", "2"], [], [False])
    assert {"op_id", "watches", "reason"} < set(columns), "it is a table all the same"
    outcomes, rejected, _ = resolved("twice", ["1", "1", None])
    assert (outcomes, sorted(map(str, rejected)), searched) == (["1"], ["1", "None"], [False, True])
    outcomes, rejected, _ = resolved("promised", ["1", "1"], "--unique-ids")
    assert (rejected, searched) == (["1"], [False, True, True]), (
        "a duplicate is reported, although ids were promised to be unique"
    )


@pytest.mark.slow
def test_the_newest_event_is_seen_while_events_are_searched_for_rejected_ones(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = pa.timestamp("us", "UTC")
    watches = pa.array([[{"key": "a", "required": 1}]])
    operation = {"instance": ["one"], "op_id": ["1"], "kind": ["ORDER"], "start": pa.array([60_000_000], second)}
    pq.write_table(pa.table({**operation, "timeout_ms": [2000], "watches": watches}), tmp_path / "operations.parquet")
    at = pa.array([61_000_000, 50_000_000, None], second)
    columns = {"instance": [None, "one", "one"], "key": ["b", "b", "b"], "progress": [1, 1, 1], "at": at}
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    tables = [str(tmp_path / f"{name}.parquet") for name in ("operations", "events")]
    assert main(["resolve", *tables, "--out", str(tmp_path / "out"), "--engine", "spark"]) == 0
    assert pq.read_table(tmp_path / "out" / "invalid_events").num_rows == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "deadline after the newest event (1970-01-01 00:01:01 UTC)" in shown, "also one that is rejected is an event"
