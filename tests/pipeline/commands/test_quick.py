"""`abeyant resolve` in this process: the same results as with Spark, without importing it; else why Spark is needed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.cli import main
from abeyant.errors import AbeyantError
from abeyant.installation import install_command
from abeyant.pipeline.commands.quick.eligible import NeedsSparkError, check_eligible
from abeyant.pipeline.commands.quick.tables import QuickTables
from abeyant.pipeline.commands.resolve import add_arguments
from abeyant.pipeline.commands.rules import rules_of
from abeyant.pipeline.results.directory import MARKER
from pipeline.orders import MAPPING, write_orders

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

TIMES = [
    *("2026-03-02T12:00:00Z", "2026-03-02 12:00:00", "2026-03-02T12:00", "2026-03-02", "2026-03-02T14:00:00+02:00"),
    *("2026-03-02 12:00:00.5", "2026-03-02T12:00:00.123456Z", "2026-02-30", "2026-03-02T24:00:00", "2026-13-01"),
    *("1767225600", "-5", "soon", "12:30", "", "0001-01-01", "9999-12-31T23:59:59.999999Z", "2026-03-02T12:61"),
    *("1969-12-31T23:59:59.999999Z", "2024-02-29 00:00:00-11:30"),
]
NUMBERS = ["1", "2", "+2", "-1", "0", "007", "1.5", "1.0", "1e3", "many", "", "0x1", "999999999999999999", "1_0"]
LENGTHS = ["15 min", "PT15M", "0:15:00", "2 fortnights", "-1 s", "", "1 day", "0 s"]


def _csv(file: Path, header: str, rows: Sequence[tuple[str, ...]]) -> str:
    lines = [",".join(f'"{value}"' if "\n" in value or "," in value else value for value in row) for row in rows]
    file.write_text("\n".join([header, *lines, ""]))
    return str(file)


def texts(folder: Path) -> list[str]:
    """Write CSV with values that can be read, and that cannot."""
    operations = [(f"t{n}", f"k{n}", time, "15 min", "1", "all", "a") for n, time in enumerate(TIMES)]
    operations += [(f"n{n}", "k0", TIMES[0], "15 min", number, "any", "b") for n, number in enumerate(NUMBERS)]
    operations += [(f"l{n}", "k0", TIMES[0], length, "1", "then", "") for n, length in enumerate(LENGTHS)]
    operations += [("t0", "k1", TIMES[0], "1 h", "1", "all", "a"), ("", "k0", TIMES[0], "1 h", "1", "", "a")]
    operations += [("q,1", "two\nlines", TIMES[0], "1 h", "1", "every", "a"), ("x", "", "no", "no", "no", "all", "a")]
    happened = [("k0", time, "1") for time in TIMES] + [("two\nlines", TIMES[0], number) for number in NUMBERS]
    happened += [(f"k{n}", "2026-03-02T12:10:00Z", "3") for n in range(0, 20, 2)] + [("", TIMES[0], "1")]
    return [
        _csv(folder / "o.csv", "OP_ID,Key,start,timeout,required,condition,kind", operations),
        _csv(folder / "e.csv", "key,at,progress", happened),
    ]


def typed(folder: Path) -> list[str]:
    """Write Parquet with columns of several types, instances, and keys that cancel."""
    size = 40
    starts = [NOON.replace(tzinfo=None) + timedelta(seconds=n) for n in range(size)]
    operations = {
        "op_id": pa.array([n % 35 for n in range(size)], pa.int32()),
        "key": pa.array([n % 7 for n in range(size)], pa.int64()),
        "start": pa.array([None if n == 3 else start for n, start in enumerate(starts)], pa.timestamp("ms")),
        "deadline": pa.array([NOON + timedelta(seconds=2 * n - 3) for n in range(size)], pa.timestamp("us", "UTC")),
        "required": pa.array([n % 3 for n in range(size)], pa.int16()),
        "cancel_key": pa.array([f"c{n}" if n % 2 else None for n in range(size)]).dictionary_encode(),
        "instance": pa.array(["a", "b", None, "b"] * (size // 4)),
        "note": pa.array([1.5] * size),
    }
    happened = {
        "key": pa.array([*map(str, range(7)), "c5", "c7"]),
        "at": pa.array([NOON.date()] * 3 + [(NOON + timedelta(days=1)).date()] * 6, pa.date32()),
        "progress": pa.array([1, 2, None, 1, 1, 2, 2, 1, 1], pa.int32()),
        "instance": pa.array(["a", "b", "b", "a", "b", "a", "b", "b", "b"]),
    }
    for name, columns in {"o": operations, "e": happened}.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return [str(folder / "o.parquet"), str(folder / "e.parquet")]


def mapped(folder: Path) -> list[str]:
    """Write the orders, whose columns have names of their own."""
    return [*write_orders(folder), *MAPPING]


def _contents(out: Path, name: str) -> tuple[dict[str, str], list[str]]:
    """Return a table's columns with their types, but for what is never null, and its rows in one order."""
    table = pq.read_table(out / name)
    kinds = {field.name: str(field.type).replace(" not null", "").replace("element", "item") for field in table.schema}
    return kinds, sorted(json.dumps(row, default=str) for row in table.to_pylist())


@pytest.mark.slow  # starts a JVM
@pytest.mark.parametrize(
    ("write", "options"),
    [
        (texts, []),
        (texts, ["--combine", "sum", "--details"]),
        (typed, ["--deadline", "exclusive"]),
        (mapped, []),
    ],
    ids=["texts", "rules", "typed", "mapped"],
)
def test_both_engines_give_the_same(
    spark: SparkSession, write: Any, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, shown, markers = write(tmp_path), {}, {}
    for engine in ("tables", "spark"):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        arguments = ["resolve", *tables, "--out", str(out), "--engine", engine, "--overwrite", *options]
        status = main(arguments)
        out.rename(tmp_path / engine)
        marker = json.loads((tmp_path / engine / MARKER).read_text())
        assert marker.pop("engine") == engine
        marker.pop("command")
        shown[engine], markers[engine] = (status, capsys.readouterr().out), marker
    assert shown["tables"] == shown["spark"]
    assert markers["tables"] == markers["spark"]
    for name in markers["spark"]["tables"]:
        assert _contents(tmp_path / "tables", name) == _contents(tmp_path / "spark", name), name
    assert len(markers["spark"]["set_aside"]) > 2, "it has malformed rows"


def test_pyspark_is_not_imported(tmp_path: Path) -> None:
    arguments = ["resolve", *mapped(tmp_path), "--out", str(tmp_path / "out"), "--json"]
    without = "sys.modules |= dict.fromkeys(('pyspark', 'py4j', 'msgspec'))"
    code = f"import sys; {without}; from abeyant.cli import main; sys.exit(main({arguments!r}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, "in this process, without Spark" in ended.stderr) == (0, True), ended.stderr
    assert json.loads(ended.stdout)["result"]["completed"] == 1
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(("newest", "said"), [("13:00", True), ("13:01", False)])
def test_what_expires_after_the_newest_event_may_still_be_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], newest: str, said: bool
) -> None:
    """A row that is rejected shows how far the table goes, too. At the deadline itself it is too late."""
    orders = [(f"o{n}", f"o{n}", f"2026-03-02T{n:02}:01", "1 h") for n in range(9, 13)]
    tables = [
        _csv(tmp_path / "o.csv", "op_id,key,start,timeout", orders),
        _csv(tmp_path / "e.csv", "key,at", [("o9", "2026-03-02T09:30"), ("", f"2026-03-02T{newest}")]),
    ]
    assert main(["resolve", *tables, "--out", str(tmp_path / "out")]) == 0
    wanted = "1 of the 3 expired have a deadline after the newest event (2026-03-02 13:00:00 UTC): they may still be"
    assert (wanted in capsys.readouterr().out) == said
    assert (wanted in (tmp_path / "out" / "report.html").read_text()) == said


def test_what_is_missing_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["resolve", *mapped(tmp_path), "--out", str(tmp_path / "out")]
    for name in ("pyspark", "py4j", "rich"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(command) == main([*command, "--engine", "tables"]) == 2
    assert capsys.readouterr().err == f"abeyant: error: resolve needs rich: {install_command('report')}\n" * 2
    assert main([*command, "--conf", "a=b"]) == 2
    said = f"resolve with Spark (--conf is given) needs pyspark, py4j and rich: {install_command('spark')}"
    assert said in capsys.readouterr().err


def _read(*arguments: str) -> QuickTables:
    parser = argparse.ArgumentParser()
    add_arguments(parser.add_subparsers())
    args = parser.parse_args(["resolve", *arguments, "--out", "out"])
    check_eligible(args)
    return QuickTables(args, rules_of(args))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--conf", "spark.sql.caseSensitive=true"], "--conf is given"),
        (["--event-query", "SELECT * FROM events"], "--event-query is given"),
        (["--operation", "kind=upper(order_id)"], "kind=upper(order_id) is more than a column or a constant"),
        (["--operation", "timeout_ms=99999*99999"], "is more than a column or a constant"),
        (["--operation", "start=current_date"], "is more than a column or a constant"),
        (["--operation", "start=5"], "only Spark converts the type int32 of the column start"),
    ],
)
def test_what_needs_spark_is_said(tmp_path: Path, options: list[str], why: str) -> None:
    tables = mapped(tmp_path)
    with pytest.raises(NeedsSparkError) as said:
        _read(*tables, *options)
    assert why in str(said.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("order_id,paid_at\n1\n", "Expected 2 columns, got 1"),
        ('order_id,paid_at\na"b,2026-01-01\n', "quotes, line ends or characters"),
        ("order_id,paid_at\r1,2026-01-01\r", "quotes, line ends or characters"),
        ("order_id,paid_at\n1\0,2026-01-01\n", "quotes, line ends or characters"),
        ("order_id,paid_at\n1,2026-01-01\n \t\r\n", "quotes, line ends or characters"),
        ("order_id,paid_at\n1,2026-01-01\n ", "quotes, line ends or characters"),
        (" \norder_id,paid_at\n", "quotes, line ends or characters"),
        ("order_id,order_id\n1,2\n", "columns without a name, or several columns of the same name"),
        ("order_id,paid_at\n1,2026-1-1\n", "only Spark can tell whether '2026-1-1' is a time"),
        ("order_id,paid_at\n1,2026-01-01 12:00 Europe/Berlin\n", "only Spark can tell whether"),
    ],
)
def test_files_that_spark_may_read_differently_are_left_to_it(tmp_path: Path, text: str, why: str) -> None:
    orders, payments, *mapping = mapped(tmp_path)
    Path(payments).write_text(text)
    with pytest.raises(NeedsSparkError) as said:
        _read(orders, payments, *mapping)
    assert why in str(said.value)


def test_a_missing_column_is_named_before_spark_starts(tmp_path: Path) -> None:
    orders, payments, *mapping = mapped(tmp_path)
    said = r"no column 'op_id', expected string \(columns: order_id, ordered_at\); --operation COLUMN=SQL maps"
    with pytest.raises(AbeyantError, match=said):
        _read(orders, payments)
    Path(orders).write_text("op_id, key, start, timeout\n")
    with pytest.raises(AbeyantError, match=r"no column 'start', .* \(columns: op_id, ` key`, ` start`, ` timeout`\); "):
        _read(orders, payments, *mapping[8:])
    orders, payments, *mapping = mapped(tmp_path)
    with pytest.raises(AbeyantError, match="operations: cannot map the unknown column 'id'; the columns are"):
        _read(orders, payments, "--operation", "id=order_id")
    with pytest.raises(AbeyantError, match=r"operations: key=oder_id: no column oder_id .*; did you mean order_id"):
        _read(orders, payments, *mapping, "--operation", "key=oder_id")


@pytest.mark.parametrize("quoted", ['"Ordered_At"', "'ordered_at'"])
def test_a_name_in_quotes_is_refused_before_spark_starts(tmp_path: Path, quoted: str) -> None:
    orders, payments, *mapping = mapped(tmp_path)
    said = f"operations: start={quoted}: in quotes it is a text, .*: --operation 'start=`ordered_at`'$"
    with pytest.raises(AbeyantError, match=said):
        _read(orders, payments, *mapping, "--operation", f"start={quoted}")
    for text in ("'ordered_at'", '"late"'):  # a label, and no column's name
        outcomes = _read(orders, payments, *mapping, "--operation", f"kind={text}").tables()["outcomes"]
        assert {*outcomes["kind"].to_pylist()} == {text[1:-1]}


def test_what_the_quick_engine_cannot_do_is_refused_where_it_was_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [*mapped(tmp_path), "--out", str(tmp_path / "out"), "--engine", "tables"]
    assert main(["resolve", *tables, "--operation", "kind=upper(order_id)"]) == 2
    said = capsys.readouterr().err
    assert (
        "--engine tables cannot do this: operations: kind=upper(order_id) is more than a column or a constant" in said
    )
