"""The session and its JVM: what keeps it alive, and what is told when it ends.

A process has one JVM, so whatever ends it, or needs one of its own, is a program in another process.
"""

from __future__ import annotations

import operator
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark import session
from abeyant.pipeline.spark.errors import explained
from abeyant.pipeline.spark.java import JAVA_VARIABLES, Java
from abeyant.pipeline.spark.jvm import interrupted_later, jvm_exit
from waiting import wait_until

START = """
import logging, os, signal, time
from contextlib import contextmanager
from abeyant.errors import AbeyantError
from abeyant.pipeline import spark_session
from abeyant.pipeline.spark.errors import explained

@contextmanager
def told():
    try:
        with explained():
            yield
    except AbeyantError as error:
        print(error, flush=True)
"""


def program(text: str) -> list[str]:
    """Run a program to its end; return the lines of both its streams."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + text],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_compiled_code_has_the_space_that_spark_needs(spark: SparkSession) -> None:
    # A quarter of an hour of these tests takes some 100 MB. Full, the session would end at a random place.
    java: Any = spark.sparkContext._jvm
    pools = java.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    code = [pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code")]
    assert sum(code) >= 200 << 20


@pytest.mark.slow
def test_the_past_is_not_kept_for_a_page_that_nobody_serves(spark: SparkSession) -> None:
    # By default a thousand plans, jobs and stages are: of a batch of a stream 0.2 MB, in the driver's memory.
    spark.sparkContext.setJobGroup("the past", "a job, again and again")
    for _ in range(80):
        spark.range(1).collect()
    plans = spark._jsparkSession.sharedState().statusStore()
    tracker = spark.sparkContext.statusTracker()
    wait_until(lambda: bool(tracker.getJobIdsForGroup("the past")))  # it is told a little later
    last_job = max(tracker.getJobIdsForGroup("the past"))
    last_stage = max(tracker.getJobInfo(last_job).stageIds)  # type: ignore[union-attr]

    def kept() -> tuple[int, int, int]:
        jobs = sum(tracker.getJobInfo(last_job - n) is not None for n in range(80))
        return plans.executionsCount(), jobs, sum(tracker.getStageInfo(last_stage - n) is not None for n in range(80))

    end = time.monotonic() + 60
    while any(map(operator.gt, kept(), (30, 60, 60))):  # what is too many goes when there is time
        assert time.monotonic() < end, f"{kept()} plans, jobs and stages are kept"
        time.sleep(0.05)
    served = session._settings("local[1]", "a test", [], brief=False, config={"spark.ui.enabled": "true"})
    assert not any("retained" in name for name in served)


def test_a_jvm_that_runs_has_not_ended(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    assert jvm_exit() is None


def test_of_a_call_that_java_refused_its_reason_is_told(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._jvm
    said = r"^Spark failed: java\.io\.FileNotFoundException: /dev/null/x \(Not a directory\)$"
    with pytest.raises(AbeyantError, match=said), explained():
        java.java.io.FileInputStream("/dev/null/x")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_until_the_jvm_is_there_but_a_second_does_not(number: signal.Signals) -> None:
    """PySpark leaves a JVM behind for ever that it did not wait for."""
    came: list[str] = []

    def interrupt(*_: object) -> None:
        came.append("interrupt")
        raise KeyboardInterrupt

    def start(signals: int) -> None:
        with interrupted_later():
            for _ in range(signals):
                signal.raise_signal(number)
            came.append("started")

    earlier = signal.signal(number, interrupt)
    try:
        for signals in (1, 2):
            with pytest.raises(KeyboardInterrupt):
                start(signals)
        start(0)
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, earlier)
    assert came == ["started", "interrupt", "interrupt", "started"]


def test_why_a_jvm_does_not_start_is_told() -> None:
    told = program("""
try:
    spark_session("local[1]", config={"spark.driver.memory": "much"})
except AbeyantError as error:
    print(error)
""")
    assert [line for line in told if line.startswith("Spark did not start on Java ") and line.endswith("-Xmxmuch")]


def test_a_reader_of_our_output_that_has_gone_is_no_failure_of_spark(spark: SparkSession) -> None:
    with pytest.raises(BrokenPipeError), explained():
        raise BrokenPipeError


@pytest.fixture(scope="module")
def life() -> list[list[str]]:
    """What is told in one JVM's life: of two sessions, of two failures, and of its end."""
    told = program("""
for cores in 1, 2:
    spark = spark_session(f"local[{cores}]", brief=True)
    print(spark.sparkContext._gateway.proc.pid, spark.sparkContext.master, spark.range(3).count())
    if cores == 1:
        spark.stop()

print("failures")
with told():
    spark.sql("SELECT nothing FROM range(1)").collect()
with told():
    numbers = spark.range(1)
    numbers.select(1 / numbers.id).collect()

print("end", flush=True)
java = spark.sparkContext._jvm.java.lang
java.System.err.println("the last word")
with told():
    java.Runtime.getRuntime().halt(7)
for module in "java_gateway", "another":  # Py4J's finalizer, a thread, may still log that it could not call the JVM
    logging.getLogger().handle(logging.makeLogRecord({"levelno": 40, "msg": module, "module": module}))
with told():
    spark.range(1).count()
with told():
    spark_session()
""")
    failures, end = told.index("failures"), told.index("end")
    return [told[:failures], told[failures + 1 : end], told[end + 1 :]]


@pytest.mark.slow
def test_the_next_session_runs_in_the_same_jvm(life: list[list[str]]) -> None:
    (first, *_), (second, *_) = one, two = [line.split() for line in life[0]]
    assert first == second
    assert (one[1:], two[1:]) == (["local[1]", "3"], ["local[2]", "3"])


@pytest.mark.slow
def test_a_failure_is_told_once(life: list[list[str]]) -> None:
    # Spark would log each as well: of a text of SQL by one logger, of a DataFrame by another.
    assert [line.split("]")[0] for line in life[1]] == [
        "Spark failed: [UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "Spark failed: [DIVIDE_BY_ZERO",
    ]


@pytest.mark.slow
def test_another_end_is_told_with_what_the_jvm_said_last(life: list[list[str]]) -> None:
    assert life[2] == [
        "Spark failed: its JVM ended with status 7: the last word",
        "Level None:None:another",
        "Spark failed: its JVM ended with status 7: the last word",
        "this process cannot start another Spark session: its JVM ended with status 7: the last word; "
        "start a new process",
    ]


@pytest.mark.slow
def test_a_machine_may_sleep() -> None:
    # Spark holds its own executor for dead after a time-out of two minutes, and ends ten minutes later; here it would
    # after seconds. Whether a pause does it is a race of two threads, so there are several.
    told = program("""
spark = spark_session("local[1]", brief=True, config={
    "spark.network.timeout": "1s",
    "spark.network.timeoutInterval": "50ms",
    "spark.executor.heartbeatInterval": "100ms",
    "spark.executor.heartbeat.maxFailures": "20",
    "spark.rpc.askTimeout": "120s",
})
java = spark.sparkContext._gateway.proc
for _ in range(12):
    if java.poll() is None:
        os.kill(java.pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(java.pid, signal.SIGCONT)
        time.sleep(0.5)
time.sleep(3)
with told():
    print(spark.range(3).count())
""")
    assert told == ["3"]


@pytest.mark.slow
def test_a_collector_that_the_environment_names_is_taken() -> None:
    # Java does not start with two.
    told = program("""
os.environ["JDK_JAVA_OPTIONS"] = "-XX:+UseG1GC"
spark = spark_session("local[1]")
beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
print(spark.range(3).count(), {bean.getName().split()[0] for bean in beans})
""")
    assert told == ["3 {'G1'}"]


@pytest.mark.parametrize("name", JAVA_VARIABLES)
def test_beside_a_collector_that_is_named_none_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in JAVA_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(session, "archive_options", lambda *_, **__: [])
    java = Java(Path("java"), 17, "PATH", wrapped=False)
    for brief, ours in ((True, "-XX:+UseSerialGC"), (False, "-XX:+UseParallelGC")):
        assert ours in session._java_options(java, {}, brief=brief, write=False)
    monkeypatch.setenv(name, "-Xmx1g -XX:+UseG1GC")
    for brief in (True, False):
        assert not any("GC" in option for option in session._java_options(java, {}, brief=brief, write=False))


@pytest.mark.parametrize(
    ("spark", "java", "told"), [("4.1.4", 25, True), ("4.1.4", 21, False), ("4.2.0", 25, False), ("5.0.0", 25, False)]
)
def test_netty_is_told_what_spark_does_not_tell_it(
    spark: str, java: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", spark)
    monkeypatch.setattr(session, "archive_options", lambda *_, **__: [])
    options = session._java_options(Java(Path("java"), java, "PATH", wrapped=False), {}, brief=True, write=False)
    assert ("-Dio.netty.noUnsafe=false" in options) == told


def test_a_container_may_have_less_memory_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(session, "_CONTAINER_LIMITS", (tmp_path / "none", limit))
    given = []
    for text in ("max\n", f"{6 << 30}\n", f"{1 << 30}\n"):
        limit.write_text(text)
        given.append(session._local_memory_mb())
    assert given[1:] == [min(given[0], 1536), 1024]


@pytest.mark.slow
def test_out_of_memory_is_told_in_one_line() -> None:
    # The failed task is told by Spark, or its JVM has ended before: both are told alike.
    said = program("""
spark = spark_session("local[2]", brief=True, config={"spark.driver.memory": "512m"})
with told():
    spark.range(2).selectExpr("aggregate(sequence(id, id + 200000000), 0L, (a, b) -> a + b)").collect()
""")
    assert said == [
        "Spark failed: a JVM ran out of memory: "
        "give it more, as by --conf spark.driver.memory=8g, or spark.executor.memory on a cluster"
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full")
def test_a_full_disk_is_told_in_words(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    with (
        pytest.raises(AbeyantError, match=r"^Spark failed: the disk is full, for the result or Spark's"),
        explained(),
    ):
        jvm.java.io.FileOutputStream("/dev/full").write(1)


def test_spark_logs_as_ever_once_its_failure_is_told() -> None:
    told = program("""
import logging
from pyspark.logger import PySparkLogger
with told():
    pass
logger = PySparkLogger.getLogger("SQLQueryContextLogger")
print(type(logger).__name__, logger.level, logging.getLogger("py4j.clientserver").level, logging.getLogger().filters)
""")
    assert told == ["PySparkLogger 30 0 []"]
