"""`abeyant expired`: what expired in a result, by deadline; of tables and of streams, without Spark."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abeyant.cli import main

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def write(file: Path, ids: range, unit: str = "us") -> None:
    """Outcomes of orders, every third completed; the later the number, the earlier the deadline."""
    file.parent.mkdir(parents=True, exist_ok=True)
    outcomes = pa.table(
        {
            "instance": ["shop" for _ in ids],
            "op_id": [f"order-{number}" for number in ids],
            "kind": pa.array([None if number % 2 else "a,b" for number in ids], pa.string()),
            "outcome": ["expired" if number % 3 else "completed" for number in ids],
            "at": pa.array([NOON - timedelta(minutes=number) for number in ids], pa.timestamp(unit, "UTC")),
            "waited_ms": [900_000.0 for _ in ids],
        }
    )
    pq.write_table(outcomes, file)


def test_all_are_in_the_csv_by_deadline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "outcomes" / "batch=0" / "part-0.parquet", range(30))
    write(tmp_path / "outcomes" / "batch=10" / "part-0.parquet", range(30, 60))
    write(tmp_path / "outcomes" / "batch=10" / "_temporary" / "part-0.parquet", range(100, 200))
    assert main(["expired", str(tmp_path), "--csv"]) == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["deadline", "op_id", "kind", "instance", "waited_ms"]
    late = [number for number in reversed(range(60)) if number % 3]
    assert [row[1] for row in rows] == [f"order-{number}" for number in late]
    assert rows[0] == ["2026-03-02T11:01:00.000000Z", "order-59", "", "shop", "900000.0"]
    assert {row[2] for row in rows} == {"", "a,b"}
    assert main(["expired", str(tmp_path), "--csv", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["expired", str(tmp_path), "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(map(str, one.values())) for one in objects] == rows


def test_a_person_sees_the_first_and_how_to_see_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "outcomes" / "part-0.parquet", range(60), "ns")  # as Spark's INT96 are read
    assert main(["expired", str(tmp_path)]) == 0
    header, first, *_, last = capsys.readouterr().out.splitlines()
    assert header.split() == ["deadline", "waited", "operation"]
    assert " ".join(first.split()) == "2026-03-02 11:01:00 15 min shop/order-59"
    assert last.startswith("40 expired; --limit 0 shows all, --csv for a file: abeyant expired ")
    assert main(["expired", str(tmp_path), "--limit", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1]) == (42, "40 expired")


def later(file: Path, ends: dict[str, tuple[str, timedelta]]) -> None:
    """Outcomes of orders with a longer time-out."""
    file.parent.mkdir(parents=True)
    columns = {
        "instance": ["shop"] * len(ends),
        "op_id": [*ends],
        "outcome": [outcome for outcome, _ in ends.values()],
        "at": pa.array([NOON + after for _, after in ends.values()], pa.timestamp("us", "UTC")),
    }
    pq.write_table(pa.table(columns), file)


def test_late_or_never_comes_from_a_result_with_a_longer_time_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, patient = tmp_path / "first", tmp_path / "patient"
    write(first / "outcomes" / "part-0.parquet", range(5))  # 0 and 3 are completed
    ends = {
        "order-4": ("completed", timedelta(minutes=-3)),
        "order-3": ("completed", timedelta(minutes=-3)),
        "order-2": ("expired", timedelta(days=9)),
        "order-1": ("completed", timedelta(hours=1, milliseconds=1.5)),
        "order-0": ("completed", timedelta(0)),
    }
    later(patient / "outcomes" / "batch=0" / "part-0.parquet", ends)
    command = ["expired", str(first), "--later", str(patient)]
    assert main(command) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "deadline waited late by operation",
        "2026-03-02 11:56:00 15 min 1 min shop/order-4 (a,b)",
        "2026-03-02 11:58:00 15 min never shop/order-2 (a,b)",
        "2026-03-02 11:59:00 15 min 1 h 1 min shop/order-1",
        "3 expired: 2 completed later, 1 never",
    ]
    assert main([*command, "--csv"]) == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["deadline", "op_id", "kind", "instance", "waited_ms", "completed", "late_ms"]
    assert [row[5:] for row in rows] == [
        ["2026-03-02T11:57:00.000000Z", "60000.0"],
        ["", ""],
        ["2026-03-02T13:00:00.001500Z", "3660001.5"],
    ]
    assert main([*command, "--json", "--limit", "2"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["late_ms"] for one in objects] == [60_000.0, None]
    assert main([*command, "--limit", "1"]) == 0
    assert f"abeyant expired {first} --later {patient} --csv" in capsys.readouterr().out

    def refusal(place: Path) -> str:
        assert main(["expired", str(first), "--later", str(place)]) == 2
        return capsys.readouterr().err

    later(tmp_path / "other" / "outcomes" / "part-0.parquet", {"order-1": ends["order-1"]})
    assert f"{tmp_path}/other is not a result of the same operations: it lacks some" in refusal(tmp_path / "other")
    shorter = {op_id: ("expired", timedelta(hours=-1)) for op_id in ends}
    later(tmp_path / "shorter" / "outcomes" / "part-0.parquet", shorter)
    assert f"{tmp_path}/shorter ends some operations earlier: --later takes" in refusal(tmp_path / "shorter")


def test_what_is_no_result_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refusal(place: object) -> str:
        assert main(["expired", str(place), "--csv"]) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        return said.err

    assert f"{tmp_path} is not the --out of abeyant resolve or stream: it has no folder 'outcomes'" in refusal(tmp_path)
    assert "s3a://shop/out is not on this machine: copy its folder 'outcomes' into a" in refusal("s3a://shop/out")
    outcomes = tmp_path / "outcomes"
    outcomes.mkdir()
    assert f"{outcomes} has no Parquet file: the result is not complete" in refusal(tmp_path)
    pq.write_table(pa.table({"op_id": ["a"]}), outcomes / "part-0.parquet")
    assert f"cannot read {outcomes}/part-0.parquet as outcomes: it lacks the column " in refusal(tmp_path)
    (outcomes / "part-0.parquet").write_bytes(b"PAR1 and then nothing")
    assert f"cannot read {outcomes}/part-0.parquet: " in refusal(tmp_path)
