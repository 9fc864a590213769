"""What all tests share: how hard the property tests look, and one Spark session.

HYPOTHESIS_PROFILE=thorough looks some ten times as long as the default does, brief (`make test`) a quarter as long. Of
seeds and cases without Hypothesis seeds.py says what `make test` takes.

Tests with Spark cost most. A query on a small table takes a second of processor time, however few its rows are; a JVM
of its own takes five to ten. So:

- Ask many things of one job: a fixture of the module makes it, or one table has many cases, an instance each.
- Take the session of `spark`, and call `main([...])` in this process where a process of its own is not the point.
- Take the fewest rows that can fail, and mark as slow what kills a JVM.
- Name a file with Spark in sharing.py, if its folder is not there.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from abeyant.engine import is_compiled
from laws import all_laws, laws_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

    from sharing import Sharing

if not is_compiled():  # then nobody is warned of it, here and in the processes that tests start: warnings are errors
    os.environ["ABEYANT_PURE"] = "1"

# The same examples at every run of CI, so that a change is judged and not its luck; others at every run by hand.
# No deadline for an example: the machine is shared, and interpreted the engine is some thirty times as slow.
settings.register_profile(
    "default",
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    settings.get_profile("default"),
    max_examples=1000,
    stateful_step_count=80,
)
# For `make test`, and for the run that interprets what another run has compiled: the whole search is that of `make
# test-all`.
settings.register_profile(
    "brief",
    settings.get_profile("default"),
    max_examples=20,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    from sharing import workers

    return workers(slow="not slow" not in config.getoption("markexpr"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Sharing | None:
    from sharing import Sharing

    return Sharing(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are there: little of what is made meanwhile is garbage
    for law in all_laws():
        config.addinivalue_line("markers", f"{law}: a law of the design: tests/laws.py")
    worker = getattr(config, "workerinput", None)
    here = Path(__file__).parent
    if worker is not None and [config.rootpath / path for path in config.args] == [here]:
        from sharing import from_another_place

        ignored = {config.rootpath / path for path in config.getoption("ignore") or ()}
        places = from_another_place(here, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
        config.args = [str(path) for path in places if path not in ignored]


def pytest_itemcollected(item: pytest.Item) -> None:
    objects = (getattr(item, name, None) for name in ("function", "cls", "module"))
    for law in sorted(laws_of(item.name, *(getattr(one, "__doc__", None) for one in objects))):
        item.add_marker(law)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        from sharing import in_order

        here = Path(__file__).parent
        files = {item.path: item.path.relative_to(here) for item in items}
        places = in_order(files[item.path] for item in items)
        items.sort(key=lambda item: (places[files[item.path]], item.path))


def pytest_collection_finish() -> None:
    """Leave what all the test modules have imported out of every later collection: some tests make thousands."""
    gc.enable()
    gc.collect()
    if hasattr(gc, "freeze"):  # GraalPy has none
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """Leave out of a module's many full collections what all tests before have left, Spark's objects for instance.

    For every module, since then each looks at what the one before has left only. So no test may call `gc.unfreeze()`:
    from there on a full collection of its process would take a second.
    """
    gc.collect()
    if hasattr(gc, "freeze"):  # GraalPy has none
        gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from abeyant.pipeline import spark_session
    from abeyant.pipeline.commands.stream_run.run import LOCAL_CHECKPOINTS
    from abeyant.pipeline.spark.jvm import jvm_exit

    # Three partitions, so that what is meant to be distributed crosses from one to another.
    # The address is for a server of Spark Connect, should a test start one.
    settings = {
        "spark.sql.shuffle.partitions": "3",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    # Streams keep their checkpoints as the command's do. As Spark's own default does, those that are killed.
    session = spark_session("local[2]", "abeyant tests", brief=True, config=settings | LOCAL_CHECKPOINTS)
    gateway = session.sparkContext._gateway
    assert gateway is not None
    java = gateway.proc
    yield session
    if java.poll() is None:
        session.stop()
        return
    # Every later test that uses the session fails on a refused connection, which tells nothing of the cause.
    pytest.fail(f"Spark failed: {jvm_exit()}", pytrace=False)
