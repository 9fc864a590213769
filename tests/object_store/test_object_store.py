"""Results, checkpoints and logs on a real S3 server, HDFS and Azurite, and writers killed. `make test-object-store`.

(More kills: `PYTHONPATH=tests python -m object_store.kill --kills 20 --store hdfs --what stream`.)
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from object_store.azure import Azure
from object_store.buckets import Bucket, conf
from object_store.kill import environment, kill_resolves, kill_streams, of_resolve
from pipeline.orders import MAPPING, write_orders
from pipeline.resolve_traces import some_traces

ROOT = Path(__file__).parents[2]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "abeyant", *words], capture_output=True, text=True, check=False, env=environment()
    )


def test_a_result_is_whole_or_not_there_when_its_writer_is_killed(bucket: Bucket, tmp_path: Path) -> None:
    found = kill_resolves(bucket, tmp_path, some_traces(100, 1), kills=4, seed=1)
    assert found["seen whole"] + found["not there"] == 5
    assert found["of them while files were written"] > 0


def test_o4_no_outcome_is_lost_or_doubled_when_a_stream_is_killed(bucket: Bucket, tmp_path: Path) -> None:
    found = kill_streams(bucket, tmp_path, some_traces(200, 2), kills=4, seed=2)
    assert found["lost"] == 0
    assert found["of them while files were written"] > 0


def test_a_stream_is_drained_from_the_store_into_it_and_what_waits_is_read(bucket: Bucket, tmp_path: Path) -> None:
    for name, path in zip(("orders", "payments"), write_orders(tmp_path), strict=True):
        bucket.write(f"{name}/{name}.csv", Path(path).read_bytes())
    out = f"{bucket.uri}/drained"
    inputs = [f"{bucket.uri}/orders", f"{bucket.uri}/payments", "--format", "csv"]
    said = command(
        "stream", *inputs, "--out", out, "--drain", "--json", "--master", "local[2]", *MAPPING, *conf(bucket)
    )
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert (told["result"]["completed"], told["result"]["expired"]) == (1, 2)
    assert told["report"].startswith(f"{out}/summary/run-")
    assert bucket.read(told["report"].removeprefix(f"{bucket.uri}/"))
    again = command(
        "stream", *inputs, "--out", out, "--trigger", "now", "--master", "local[2]", *MAPPING, *conf(bucket)
    )
    assert f"{out} was drained: its input has ended" in again.stderr
    if isinstance(bucket, Azure):
        return  # it lists folders before files, where Azure sorts both: Hadoop's driver then tells of folders twice
    waits = command("pending", out, "--master", "local[2]", *conf(bucket))
    assert waits.stdout.splitlines()[-1:] == ["0 pending"], waits.stderr


def test_a_request_log_is_analyzed_from_the_store_into_it(bucket: Bucket) -> None:
    sample = ROOT / "tests" / "data" / "kafka-request-debug.log.gz"
    bucket.write("logs/broker-1/kafka-request.log.gz", sample.read_bytes())
    lines = gzip.decompress(sample.read_bytes()).splitlines(keepends=True)
    for pod in range(2):
        text = b"".join(b"[pod/kafka-%d/kafka] %s" % (pod, line) for line in lines)
        bucket.write(f"logs/pods/kafka-request.log.{pod}", text)
    out, logs = f"{bucket.uri}/analysis", f"{bucket.uri}/logs"
    said = command("analyze", logs, "--out", out, "--json", "--master", "local[2]", *conf(bucket))
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert told["result"]["requests"] > 0
    assert [entry["instance"] for entry in told["result"]["inputs"]] == ["broker-1", "kafka-0", "kafka-1"]
    assert bucket.read(told["report"].removeprefix(f"{bucket.uri}/"))
    assert "not-a-secret" not in said.stdout + said.stderr
    there = command("analyze", logs, "--out", out, "--master", "local[2]", *conf(bucket))
    assert f"{out} already holds a result; use --overwrite" in there.stderr


def test_a_session_without_s3a_names_the_package() -> None:
    said = command("resolve", "s3a://b/o", "s3a://b/e", "--out", "s3a://b/out", "--master", "local[1]")
    assert said.returncode == 2
    (line,) = [line for line in said.stderr.splitlines() if line.startswith("abeyant:")]
    assert "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3." in line


def test_nobody_reads_a_result_that_has_no_marker(bucket: Bucket) -> None:
    assert of_resolve(bucket, "nowhere") is None
