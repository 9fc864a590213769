"""What a command does before its JVM starts: no heavy import, so that what is refused is refused at once."""

from __future__ import annotations

import logging
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.pipeline.commands.running import spark_for
from abeyant.pipeline.results.directory import write_marker
from abeyant.pipeline.spark.errors import explained
from pipeline.orders import MAPPING, write_orders

_BEFORE_SPARK = """
import sys
import pyspark.sql
before = set(sys.modules)  # PySpark 4.1 brings NumPy
from abeyant.pipeline.spark import session

def start(*_, **__):
    raise SystemExit("heavy: " + " ".join(sorted({"numpy", "pandas", "pyarrow"} & set(sys.modules) - before)))

session.command_session = start
from abeyant.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "command", [["resolve", "--engine", "spark"], ["resolve", "--operation", "kind=upper(order_id)"], ["stream"]]
)
def test_nothing_heavy_is_imported_before_spark_starts(command: list[str], tmp_path: Path) -> None:
    arguments = [*command, *write_orders(tmp_path), "--out", str(tmp_path / "out"), *MAPPING]
    ended = subprocess.run([sys.executable, "-c", _BEFORE_SPARK, *arguments], capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == "heavy: "


def test_what_resolves_tables_in_a_worker_brings_no_pandas() -> None:
    program = (
        "import sys\nimport pyspark.sql\nbefore = set(sys.modules)\n"
        "import abeyant.pipeline.resolver.tables.profile, abeyant.pipeline.resolver.tables.reaching\n"
        "print('pandas' in set(sys.modules) - before, 'pyarrow' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("False True\n", "")


def test_py4j_tells_of_no_interrupt_while_a_session_starts_and_stops(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs a traceback of Ctrl-C, by the root logger; what others log goes on."""

    def log(module: str) -> None:
        root = logging.getLogger()
        root.handle(logging.LogRecord("root", logging.ERROR, f"{module}.py", 1, module, None, None))

    def start(*_: object, **__: object) -> SparkSession:
        log("java_gateway")
        return spark

    args = Namespace(master="local[1]", conf=[], quiet=True)
    with spark_for(args, "abeyant", start=start), explained():
        pass
    with spark_for(args, "abeyant", start=start):
        with explained():
            log("java_gateway")
        log("java_gateway")
        log("another")
    assert caplog.messages == ["another"]


def test_an_interrupt_tells_whether_the_result_is_there(spark: SparkSession, tmp_path: Path) -> None:
    """It may come when the result is in its place, but Spark still runs."""
    out = tmp_path / "out"
    args = Namespace(master="local[1]", conf=[], quiet=True, overwrite=True, out=out)

    def run(*, writes: bool) -> None:
        with spark_for(args, "abeyant", start=lambda *_, **__: spark):
            if writes:
                out.mkdir()
                write_marker(out, {"finished": "now"})
            raise KeyboardInterrupt

    for writes in (False, True, False):
        with pytest.raises(KeyboardInterrupt) as caught:
            run(writes=writes)
        assert str(caught.value) == f"{out} {'is complete' if writes else 'was not written'}"
