"""Started by spark-submit: master and settings are spark-submit's, what results mean is ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from abeyant.pipeline.spark.java import find_java

JOB = """
import json
import sys

from abeyant.pipeline import spark_session

spark = spark_session("spark://nowhere:7077", "ours", config={"spark.sql.shuffle.partitions": "99"})
names = ["spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.execution.arrow.pyspark.enabled"]
told = [spark.sparkContext.master, spark.sparkContext.appName, *(spark.conf.get(name) for name in names)]
print(json.dumps(told), file=open(sys.argv[1], "w"))
spark.stop()
"""


@pytest.mark.slow
def test_the_session_is_spark_submits(tmp_path: Path) -> None:
    job, told = tmp_path / "job.py", tmp_path / "told.json"
    job.write_text(JOB)
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]", "--name", "theirs"]
    for setting in ("sql.shuffle.partitions=2", "sql.session.timeZone=Asia/Tokyo", "ui.enabled=false"):
        submit += ["--conf", f"spark.{setting}"]
    environment = os.environ | {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    ran = subprocess.run([*submit, str(job), str(told)], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(told.read_text()) == ["local[1]", "theirs", "2", "UTC", "true"]
