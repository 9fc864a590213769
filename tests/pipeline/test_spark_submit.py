"""The command as spark-submit's application: master and settings are spark-submit's, what results mean is ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark

from abeyance.pipeline.java import find_java
from abeyance.pipeline.result_directory import MARKER
from pipeline.orders import MAPPING, write_orders

JOB = """
from pyspark.sql import SparkSession

from abeyance.cli import main

status = main()
spark = SparkSession.getActiveSession()
assert spark.sparkContext.master == "local[1]", spark.sparkContext.master
assert spark.sparkContext.appName == "named by spark-submit", spark.sparkContext.appName
raise SystemExit(status)
"""


def test_resolve_under_spark_submit(tmp_path: Path) -> None:
    job, out = tmp_path / "run_abeyance.py", tmp_path / "out"
    job.write_text(JOB.replace("status = main()", "SparkSession.builder.getOrCreate()\nstatus = main()"))
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]"]
    settings = ["--name", "named by spark-submit", "--conf", "spark.sql.session.timeZone=Asia/Tokyo"]
    settings += ["--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false"]
    settings += ["--conf", "spark.driver.host=127.0.0.1"]
    ours = ["resolve", *write_orders(tmp_path), "--out", str(out), *MAPPING, "--master", "spark://nowhere:7077"]
    environment = os.environ | {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    ran = subprocess.run(
        [*submit, *settings, str(job), *ours], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.splitlines()[-1] == str(out)
    assert json.loads((out / MARKER).read_text())["completed"] == 1
    outcomes = pq.read_table(out / "outcomes").to_pylist()
    assert {row["op_id"]: row["outcome"] for row in outcomes} == {"1": "completed", "2": "expired", "3": "expired"}
