"""Outcomes in tables of Delta Lake and Apache Iceberg, writers killed. `make test-lakes`.

(More kills: `PYTHONPATH=tests:. python -m lakes.kill --kills 20 --format delta`.)
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lakes.environment import fetched, settings
from lakes.kill import command, die_once, differences, write_input
from pipeline.resolve_traces import some_traces
from pipeline.resolver.streams.kill import batches_done, kill_job
from test_docs import blocks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_o4_no_outcome_is_lost_or_doubled_when_the_driver_is_killed(
    kind: str, lake_environment: dict[str, str], tmp_path: Path
) -> None:
    traces = some_traces(200, seed=4)
    write_input(tmp_path, traces, files=14, seed=4)
    die_once(tmp_path, kind, at=1, after="batch")
    before = batches_done(tmp_path)
    die_once(tmp_path, kind, at=before + 1, after="outcomes")
    assert batches_done(tmp_path) > before > 0, "the batch of which Spark knew nothing was done again"
    kill_job(tmp_path, command(tmp_path, kind), kills=2, seed=4, environment=lake_environment)
    found = differences(tmp_path, traces)
    assert (found["lost"], found["doubled or wrong"]) == (0, 0), found
    assert found["outcomes"] == found["set aside"] == sum(len(trace.operations) for trace in traces)


LOOK = """
from pyspark.errors import StreamingQueryException
pipeline.end_of_input("end")
HOW, ended = ("completed", "expired"), {}
for to in (
    pipeline.IcebergSink("lake.shop.outcomes", "lake.shop.aside"),
    pipeline.DeltaSink(f"delta.`{home}/outcomes`", f"delta.`{home}/aside`"),
):
    name = "iceberg" if isinstance(to, pipeline.IcebergSink) else "delta"
    run = answers.writeStream.foreachBatch(to).option("checkpointLocation", f"checkpoints/{name}")
    query = run.trigger(availableNow=True).start()
    query.awaitTermination()
    counts = [counted for each in query.recentProgress if (counted := pipeline.batch_counts(each))]
    ended[name] = [sum(getattr(counted, how) for counted in counts) for how in HOW]
wrong = answers.writeStream.foreachBatch(pipeline.DeltaSink("lake.shop.outcomes", "lake.shop.aside"))
try:
    wrong.option("checkpointLocation", "checkpoints/wrong").trigger(availableNow=True).start().awaitTermination()
except StreamingQueryException as error:
    refused = str(error)
found = {
    name: sorted(map(tuple, spark.table(name).selectExpr("op_id", "outcome").collect()))
    for name in (
        "lake.shop.all_outcomes",
        f"delta.`{home}/all_outcomes`",
        "lake.shop.outcomes",
        f"delta.`{home}/outcomes`",
    )
}
commits = spark.table("lake.shop.outcomes.snapshots").selectExpr("summary['added-records']").collect()
import json
with open("seen.json", "w") as file:
    json.dump({"found": found, "commits": [row[0] for row in commits], "refused": refused, "ended": ended}, file)
"""


def test_the_page_of_lake_tables_runs_as_pasted(lake_environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = "\n".join(code for _, code in blocks(ROOT / "docs" / "lake-tables.md", "python"))
    named = '"spark.jars.packages": ",".join(packages)'
    assert page.count(named) == 1
    jars = f'"spark.jars": {",".join(map(str, fetched()))!r}'  # those that Maven fetched: no resolver is needed here
    ran = subprocess.run(
        [sys.executable, "-c", page.replace(named, jars) + LOOK],
        cwd=tmp_path, env=lake_environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, [line for line in ran.stderr.splitlines() if "Error" in line or "Exception" in line]
    seen = json.loads((tmp_path / "seen.json").read_text())
    ends = seen["found"].pop("lake.shop.all_outcomes")
    assert len(ends) == 40
    assert [ends] * 3 == list(seen["found"].values())
    assert seen["ended"]["delta"] == seen["ended"]["iceberg"]
    assert sum(seen["ended"]["delta"]) > 0, "a batch tells its counts, as with other sinks"
    assert all(int(added) > 0 for added in seen["commits"]), "a batch without outcomes is no commit"
    assert "lake.shop.outcomes has the format iceberg: DeltaSink writes only Delta Lake tables" in seen["refused"]


DETAILS = """
import json
from datetime import datetime, timedelta
from pathlib import Path
from abeyant import pipeline

home = Path.cwd()
config = json.loads(Path("session.json").read_text())
spark = pipeline.spark_session("local[2]", "details", brief=True, config=config)
noon, minute = datetime(2026, 3, 2, 12), timedelta(minutes=1)
waits = [(name, f"paid/{name}", f"left/{name}", noon, 900_000) for name in ("pays", "leaves", "sleeps")]
columns = "op_id string, key string, cancel_key string, start timestamp, timeout_ms bigint"
spark.createDataFrame(waits, columns).write.parquet("operations")
happened = [("paid/pays", noon + minute), ("left/leaves", noon + 2 * minute)]
spark.createDataFrame(happened, "key string, at timestamp").write.parquet("events")
seen = {}
for sink in (
    pipeline.DeltaSink(f"delta.`{home}/outcomes`", f"delta.`{home}/aside`"),
    pipeline.IcebergSink("lake.shop.outcomes", "lake.shop.aside"),
):
    name = type(sink).__name__
    for _ in "input", "end":
        read = [spark.readStream.schema(spark.read.parquet(of).schema).parquet(of) for of in ("operations", "events")]
        answers = pipeline.resolve_stream(*read, lateness=0.0, details=True, end_of_input=home / f"{name}.end")
        run = answers.writeStream.foreachBatch(sink).option("checkpointLocation", f"{home}/checkpoints/{name}")
        run.trigger(availableNow=True).start().awaitTermination()
        pipeline.end_of_input(home / f"{name}.end")
    table = spark.table(sink.outcomes)
    details = "op_id", "outcome", "completed_by.key", "minute(completed_by.at)", "cancelled_by.key"
    rows = table.selectExpr(*details, "minute(cancelled_by.at)", "counted").collect()
    seen[name] = sorted(map(list, rows))
Path("seen.json").write_text(json.dumps(seen))
spark.stop()
"""


def test_details_are_in_the_tables(lake_environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text(json.dumps(settings(tmp_path)))
    ran = subprocess.run(
        [sys.executable, "-c", DETAILS],
        cwd=tmp_path, env=lake_environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, [line for line in ran.stderr.splitlines() if "Error" in line or "Exception" in line]
    known = [
        ["leaves", "cancelled", None, None, "left/leaves", 2, 0],
        ["pays", "completed", "paid/pays", 1, None, None, 1],
        ["sleeps", "expired", None, None, None, None, 0],
    ]
    assert json.loads((tmp_path / "seen.json").read_text()) == {"DeltaSink": known, "IcebergSink": known}
