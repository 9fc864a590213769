"""A result on a store appears whole or not at all: on a local path, as if it were an object store."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant import pipeline
from abeyant.errors import AbeyantError
from abeyant.pipeline.results.directory import MARKER, write_marker
from abeyant.pipeline.results.registry import sink_of
from abeyant.pipeline.results.sink import ResultWriter

LIVE = {"host": "elsewhere", "process": 7, "since": "2026-01-01T00:00:00+00:00"}


def make(spark: SparkSession, out: Path, rows: int, *, overwrite: bool = False, fail: bool = False) -> ResultWriter:
    with sink_of(f"file://{out}").table(spark, overwrite=overwrite) as result:
        result.write("outcomes", spark.range(rows))
        assert result.rows("outcomes") == rows
        assert sum(pq.read_metadata(part).num_rows for part in result.files("outcomes")) == rows
        (result.folder / "waits").mkdir()
        pq.write_table(pa.table({"n": [rows]}), result.folder / "waits" / "part-0.parquet")
        result.fetch("outcomes")
        (result.folder / "report.html").write_text(f"{pq.read_table(result.folder / 'outcomes').num_rows} rows")
        write_marker(result.folder, {"deadline": "inclusive"})
        if fail:
            raise KeyboardInterrupt
    return result


def there(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir() if not path.name.startswith("."))


@pytest.mark.slow  # many small jobs
def test_a_result_is_there_when_its_marker_is(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "a result"
    with pytest.raises(AbeyantError, match="not a finished result with a table 'outcomes'"):
        pipeline.read_result(spark, f"file://{out}")
    with pytest.raises(KeyboardInterrupt):
        make(spark, out, 3, fail=True)
    assert there(out) == ["claims"]
    # A kill -9 leaves a claim and half a table; nobody reads it, and the next run removes it.
    torn = out / "run-killed" / "outcomes" / "part-0.parquet"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"PAR1")
    with pytest.raises(AbeyantError, match="not a finished result with a table 'outcomes'"):
        pipeline.read_result(spark, out)

    made = make(spark, out, 3)
    assert not torn.exists()
    assert pipeline.read_result(spark, out).count() == 3
    assert [row.n for row in pipeline.read_result(spark, out, "waits").collect()] == [3]
    assert Path(str(made.report).removeprefix("file://")).read_text() == "3 rows"
    assert json.loads((out / MARKER).read_text())["deadline"] == "inclusive"
    with pytest.raises(AbeyantError, match=r"has no table 'keys'; there are outcomes, waits"):
        pipeline.read_result(spark, out, "keys")

    with pytest.raises(AbeyantError, match="already holds a result; use --overwrite"):
        make(spark, out, 4)
    with pytest.raises(KeyboardInterrupt):
        make(spark, out, 4, overwrite=True, fail=True)
    assert pipeline.read_result(spark, out).count() == 3, "the old one stays until the new one is whole"
    make(spark, out, 4, overwrite=True)
    assert pipeline.read_result(spark, out).count() == 4
    assert len([name for name in there(out) if name.startswith("run-")]) == 1, "the old one is gone"


def test_what_is_not_ours_is_left_alone_and_one_run_writes_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(AbeyantError, match="is not a result of abeyant: it is left alone"):
        make(spark, tmp_path, 1, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "years"
    out = tmp_path / "out"
    (out / "claims").mkdir(parents=True)
    (out / "run-other" / "outcomes").mkdir(parents=True)
    (out / "claims" / "run-other.json").write_text(json.dumps(LIVE))
    with pytest.raises(AbeyantError, match="is being written by process 7 on elsewhere, since 2026-01-01"):
        make(spark, out, 1, overwrite=True)
    (out / "claims" / "run-other.json").write_text("")
    with pytest.raises(AbeyantError, match=r"lease is truncated .*; if that process has died, its lease expires in"):
        make(spark, out, 1, overwrite=True)
    assert (out / "run-other" / "outcomes").exists()

    def taken_over() -> None:
        with sink_of(f"file://{tmp_path / 'slow'}").table(spark, overwrite=False) as result:
            result.write("outcomes", spark.range(1))
            write_marker(result.folder, {})
            for claim in (tmp_path / "slow" / "claims").glob("*.json"):
                claim.unlink()

    with pytest.raises(AbeyantError, match="another run has taken over"):
        taken_over()
    assert not (tmp_path / "slow" / MARKER).exists()
