"""The house: imports point down only and never in a circle; each room of the pipeline is seen from the folder list."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from scripts.draw_house import imported

SOURCE = Path(__file__).parents[1] / "src"

# From the roof to the ground: a module may import what is on its own floor's line or below, wherever the import stands.
FLOORS = (
    ("__main__",),
    ("cli",),
    ("pipeline.commands",),
    ("pipeline",),
    ("pipeline.replayer",),
    ("pipeline.analysis",),
    ("pipeline.report",),
    ("pipeline.replication",),
    ("pipeline.resolver",),
    ("pipeline.resolver.either",),
    ("pipeline.resolver.streams",),
    ("pipeline.resolver.tables",),
    ("pipeline.resolver.rules",),
    ("pipeline.resolver.given",),
    ("pipeline.resolver.rejected",),
    ("pipeline.request_log", "pipeline.sources"),
    ("pipeline.results",),
    ("pipeline.spark",),
    ("pipeline.schemas", "pipeline.purging"),
    ("tables",),
    ("window",),
    ("broker.command", "broker.genuine", "broker.simulation"),
    ("broker.control",),
    ("broker",),
    ("broker.cluster",),
    ("broker.api",),
    ("broker.request_log",),
    ("broker.broker",),
    ("broker.housekeeping",),
    ("broker.requests",),
    ("broker.requests.common",),
    ("broker.groups", "broker.transactions"),
    ("broker.shares",),
    ("broker.coordinator",),
    ("broker.delayed",),
    ("broker.replica",),
    ("broker.delayed.operation",),
    ("broker.controller",),
    ("broker.leaders",),
    (
        *("broker.acls", "broker.delegation_tokens", "broker.features", "broker.group_settings", "broker.loggers"),
        *("broker.quotas", "broker.scram_users", "broker.telemetry"),
    ),
    ("broker.metadata_store", "broker.placement"),
    ("broker.partition_state",),
    ("broker.errors",),
    ("broker.wire",),
    ("broker.security",),
    ("broker.settings",),
    ("broker.log",),
    ("broker.reconfiguration",),
    ("broker.checks", "broker.clock", "broker.definitions", "broker.network", "broker.quotas.rates"),
    ("metrics", "simulation"),
    ("aio",),
    ("pages", "web"),
    ("",),  # abeyant itself: timers, purgatory and idle time-outs by name
    ("resolver", "purgatory"),
    ("idle",),
    ("timer",),
    ("mutex",),
    ("kernels",),
    ("engine",),
    ("_interpreted", "cache", "command_line", "ending", "forking", "lazy", "reporting", "signature"),
    ("former", "installation", "renamed"),
    ("errors",),
)
ROOMS = {name: number for number, floor in enumerate(FLOORS) for name in floor}


def outside(text: str) -> set[str]:
    """The folders of a checkout from which a module imports."""
    found = {name for node in ast.walk(ast.parse(text)) for name in _named(node)}
    return {name.partition(".")[0] for name in found} & {"examples", "lab", "scripts", "tests"}


def _named(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


@cache
def sources() -> dict[str, str]:
    """The text of each module of `abeyant`, by its name below that; a package's name ends in `.__init__`."""
    top = SOURCE / "abeyant"
    return {
        ".".join(path.relative_to(top).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in top.rglob("*.py")
    }


def floor(name: str) -> int:
    """The floor of a module, or of a name in one: that of the longest room that it begins with."""
    parts = name.removesuffix("__init__").split(".")
    rooms = (".".join(parts[:n]).rstrip(".") for n in range(len(parts), -1, -1))
    return ROOMS[next(room for room in rooms if room in ROOMS)]


@cache
def imports(name: str, text: str) -> tuple[str, ...]:
    return tuple(imported(name, ast.parse(text)))


def upward(texts: Mapping[str, str]) -> list[str]:
    return [
        f"{name} imports {other}"
        for name, text in texts.items()
        for other in imports(name, text)
        if floor(other) < floor(name)
    ]


def test_imports_point_down_only() -> None:
    assert upward(sources()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("engine.planted", "import abeyant.timer.base"),
        ("engine.planted", "from abeyant.kernels import rows"),
        ("pages.planted", "def draw():\n    from abeyant.pipeline import resolve"),
        ("pipeline.request_log.planted", "from ..resolver import tables"),
        ("pipeline.resolver.tables.__init__", "from ..streams import plan"),
        ("purgatory.__init__", "from abeyant import aio"),
        ("pipeline.purging.planted", "from abeyant.pipeline.replayer import replay"),
    ],
)
def test_an_import_that_points_up_is_found(name: str, text: str) -> None:
    assert len(upward({**sources(), name: text})) == 1


class AtImport(ast.NodeTransformer):
    """Leaves what runs when a module is imported."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def at_import(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Of each module, those that it waits for while it is imported."""
    return graph({name: imported(name, AtImport().visit(ast.parse(text))) for name, text in texts.items()})


def graph(texts: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Of each module, those that it imports."""
    found: dict[str, set[str]] = {}
    for name, names in texts.items():
        found[name] = set()
        for full in names:
            parts = full.split(".")
            for prefix in (".".join(parts[:n]) for n in range(len(parts), 0, -1)):
                if prefix in texts or f"{prefix}.__init__" in texts:
                    found[name].add(prefix if prefix in texts else f"{prefix}.__init__")
                    break
        found[name].discard(name)
    return found


def test_the_package_imports_nothing_that_only_a_checkout_has() -> None:
    assert {name for name, text in sources().items() if outside(text)} == set()
    assert outside("def run():\n    from lab.rivals import DESIGNS\n    import tests.oracle") == {"lab", "tests"}


def test_no_imports_go_in_a_circle() -> None:
    TopologicalSorter(at_import(sources())).prepare()


@pytest.mark.parametrize(
    "room",
    [
        *("engine", "purgatory", "resolver", "idle", "aio", "simulation"),
        *("tables", "pages", "pipeline", "broker", "web", "window"),
    ],
)
def test_no_imports_go_in_a_circle_types_included(room: str) -> None:
    named = {name: imports(name, text) for name, text in sources().items() if name.startswith(f"{room}.")}
    assert len(named) > 1
    TopologicalSorter(graph(named)).prepare()


def test_a_circle_of_imports_is_found() -> None:
    texts = {
        "engine.wheel": "import abeyant.engine.slab",
        "engine.slab": "from abeyant.timer.base import Timer",
        "timer.base": "if TYPE_CHECKING:\n    pass\nelse:\n    from abeyant.engine import wheel",
    }
    with pytest.raises(CycleError, match="cycle"):
        TopologicalSorter(at_import(texts)).prepare()
    late = {**texts, "timer.base": "def run():\n    from abeyant.engine import wheel"}
    TopologicalSorter(at_import(late)).prepare()


def test_the_pipelines_rooms_are_seen_from_the_folder_list() -> None:
    modules = {path.name for path in (SOURCE / "abeyant" / "pipeline").glob("*.py")}
    assert modules == {"__init__.py", "schemas.py"}


# What is private to Spark stands in one module per kind; docs/dependencies.md lists them.
PRIVATE = {
    "pipeline.spark.hadoop_files": "Hadoop's files and settings in the driver's JVM",
    "pipeline.spark.kafka_client": "Kafka's admin client in the driver's JVM",
    "pipeline.spark.jvm": "the JVM's process, and how it is started",
    "pipeline.spark.plans": "a table's plan",
    "pipeline.spark.errors": "messages that are matched by their text",
    "pipeline.spark.versions": "checks of versions",
}
INSIDE_SPARK = re.compile(
    r"\b_(?:jvm|jdf|jsparkSession|jsc|sc|gateway|jconf|jreader|jwrite|jrdd|accumulatorServer)\b"
    r"|\bjava_exception\b|\bfrom py4j\b|\bimport py4j\b|(?<!apache\.)\bspark\.version\b|\bpyspark\.__version__"
    r"|\bin str\(error\)|\b(?:search|match|findall)\(str\(error\)"
)


def inside_spark(texts: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {found[0]}"
        for name, text in texts.items()
        if name not in PRIVATE and name.startswith("pipeline.")
        for found in INSIDE_SPARK.finditer(text)
    ]


def test_what_is_private_to_spark_stands_in_modules_of_its_own() -> None:
    assert inside_spark(sources()) == []
    listed = (SOURCE.parent / "docs" / "dependencies.md").read_text(encoding="utf-8")
    files = {f"`spark/{name.rpartition('.')[2]}.py`" for name in PRIVATE}
    assert [file for file in sorted(files) if file not in listed] == []


@pytest.mark.parametrize(
    "text",
    [
        "spark._jvm.java.lang",
        "table._jdf.queryExecution()",
        "from py4j.protocol import Py4JError",
        "error.java_exception.getMessage()",
        "if 'No such table' in str(error): pass",
        "if spark.version < '4.2': pass",
    ],
)
def test_what_is_private_to_spark_is_found(text: str) -> None:
    assert len(inside_spark({**sources(), "pipeline.sources.planted": text})) == 1


def test_reports_know_no_spark() -> None:
    rooms = ("pages", "pipeline.report")
    names = [f"abeyant.{name.removesuffix('.__init__')}" for name in sources() if name.startswith(rooms)]
    program = f"import sys\nfor name in {names}: __import__(name)\nprint('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
