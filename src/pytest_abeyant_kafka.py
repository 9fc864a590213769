"""The pytest plugin for programs that use Kafka: the fixture `kafka`, its marker, and `--kafka=genuine`.

    @pytest.mark.kafka(brokers=3, clock="held", **{"min.insync.replicas": 2})
    def test_orders(kafka): ...

    @pytest.mark.kafka(brokers=3, seeds=200)
    async def test_orders(simulation): ...

The fixture `kafka` is a new `abeyant.broker.Cluster` for each test; `simulation` runs an async test with many seeds.
`--kafka=genuine` runs the same tests against three brokers of Apache Kafka, and skips tests that need what only our
cluster can do, with the reason. If a `conftest.py` has its own option `--kafka`, ours is only `--abeyant-kafka`.

Every pytest run in an environment with abeyant loads this plugin, like `pytest_abeyant`. So it imports abeyant only
when a test uses the fixture.
"""

from __future__ import annotations

import argparse
import functools
import inspect
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from abeyant.broker import Cluster
    from abeyant.broker.genuine.kafka import GenuineKafka
    from abeyant.broker.simulation.pytest_runner import Order

_MARKER = (
    "kafka(brokers=1, clock='real', security='PLAINTEXT', users=None, racks=None, seeds=100, faults=KINDS, "
    "horizon=10.0, converge=120.0, **settings): the cluster of the fixture `kafka`, or with seeds= and the next three "
    "of `simulation`; see abeyant.broker.Cluster and abeyant.broker.simulation.Options; "
    "settings use Kafka's names, with dots or underscores (min_insync_replicas=2)"
)
_SIMULATED = ("seeds", "faults", "horizon", "converge")
_OPTIONS = ("brokers", "clock", "security", "users", "racks", *_SIMULATED)  # the others are settings
_SEEDS = 100  # by default
_CHUNKS = 4  # of a test's seeds for each worker of xdist
_OWN = "create your own Cluster for it"
_UNAVAILABLE = {
    "settings": "write them beside the others, min_insync_replicas=2",
    **dict.fromkeys(("host", "port", "advertise", "data", "request_log"), _OWN),
}
_CHOICES = ("abeyant", "genuine")
_SHORT, _LONG = "--kafka", "--abeyant-kafka"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--abeyant-kafka`, a name that no other plugin has, and the options of simulated tests."""
    group = parser.getgroup("abeyant")
    group.addoption(
        _LONG,
        choices=_CHOICES,
        default="abeyant",
        help="cluster of the fixture `kafka`: abeyant (default), or genuine: three brokers of Apache Kafka by Maven",
    )
    group.addoption("--kafka-seeds", metavar="N", help="seeds of each simulated test: a number, or FIRST:END,...")
    group.addoption("--kafka-repeat", metavar="ID", help="repeat one run of a simulated test; a failure prints its ID")
    group.addoption("--kafka-trace", metavar="FILE", help="append a line for each seed: number, hash, outcome, test")
    group.addoption("--kafka-story", metavar="DIR", help="write a failure's timeline there, as an HTML page")
    group.addoption(
        "--kafka-corpus", metavar="FILE", help="run the seeds in FILE first; add those that reach something new"
    )
    group.addoption(
        "--kafka-seconds",
        metavar="S",
        type=float,
        help="seconds after which a test starts no more seeds (default: none)",
    )
    group.addoption("--kafka-report", metavar="FILE", help=argparse.SUPPRESS)  # from the child to its parent


@pytest.hookimpl(hookwrapper=True)  # the old style, for pluggy before 1.2
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, Any, None]:
    """Add `--kafka`, unless a `conftest.py` has an option with this name, as pytest rejects duplicates."""
    yield
    try:
        is_free = _SHORT in parser.parse_known_and_unknown_args([_SHORT])[1]
    except pytest.UsageError:  # it exists, and needs a value
        is_free = False
    if is_free:
        parser.getgroup("abeyant").addoption(
            _SHORT, dest="abeyant_kafka", choices=_CHOICES, default="abeyant", help=f"the same as {_LONG}"
        )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a header line if the tests run against genuine Kafka."""
    return "kafka: three brokers of Apache Kafka" if config.getoption("abeyant_kafka") == "genuine" else None


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A new Kafka cluster for this test, with the options of its marker `kafka`."""
    options = _options(request.node)
    if request.config.getoption("abeyant_kafka") == "genuine":
        yield from _genuine(request, options)
        return
    from abeyant.broker import Cluster
    from abeyant.errors import AbeyantError

    try:
        cluster = Cluster(**options)
    except (TypeError, ValueError, AbeyantError) as error:
        message = str(error)
    else:
        with cluster:
            yield cluster
        return
    pytest.fail(f"@pytest.mark.kafka: {message}", pytrace=False)  # here, so that pytest prints no cause of it again


@pytest.fixture
def simulation(request: pytest.FixtureRequest) -> Any:
    """A cluster, its clients and programs in virtual time, for each seed: `abeyant.broker.simulation.Simulation`."""
    if request.config.getoption("abeyant_kafka") == "genuine":
        pytest.skip("--kafka=genuine: only abeyant.broker is simulated")
    if not inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        pytest.fail("the fixture `simulation` is for `async def` tests: write `async def`", pytrace=False)
    return getattr(request, "param", None)  # the seeds of this part; the test itself gets one for each seed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Divide a simulated test's seeds among the workers of xdist."""
    workers = getattr(metafunc.config, "workerinput", {}).get("workercount", 1)
    if "simulation" not in metafunc.fixturenames or workers == 1 or metafunc.config.getoption("kafka_repeat"):
        return
    from abeyant.broker.simulation.pytest_runner import chunks

    seeds = _seeds(metafunc.config, metafunc.definition)
    per_worker = 1 if metafunc.config.getoption("kafka_seconds") else _CHUNKS  # the budget is of a part
    parts = chunks(seeds, per_worker * workers)
    metafunc.parametrize("simulation", parts, indirect=True, ids=[_part_id(part) for part in parts])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a test that uses the fixture `simulation` with each of its seeds."""
    if "simulation" not in pyfuncitem.fixturenames or "simulation" not in pyfuncitem.funcargs:
        return None
    __tracebackhide__ = True
    from abeyant.broker.simulation import pytest_runner
    from abeyant.errors import AbeyantError
    from abeyant.simulation.hashes import hashes_are_fixed

    config = pyfuncitem.config
    options = _options(pyfuncitem)
    try:
        order = _order(pyfuncitem)
        node = _without_part(pyfuncitem)
        if hashes_are_fixed():
            names = pyfuncitem._fixtureinfo.argnames
            fixtures = {name: pyfuncitem.funcargs[name] for name in names if name != "simulation"}
            options.pop("seeds", None)
            skipped, xfailed = list[str](), list[str]()
            test = functools.partial(_call, pyfuncitem.obj, fixtures, skipped, xfailed)
            report = pytest_runner.run_in_process(test, node, pytest_runner.options_of(options), order)
            report.skipped, report.xfailed = skipped, xfailed
            if config.getoption("kafka_report"):
                pytest_runner.write_report(Path(config.getoption("kafka_report")), report)
        else:
            report = pytest_runner.run_in_child(node, config.rootpath, _arguments(config), order)
    except AbeyantError as error:
        if config.getoption("kafka_report"):
            pytest_runner.write_report(Path(config.getoption("kafka_report")), pytest_runner.Report(misused=str(error)))
        pytest.fail(str(error), pytrace=False)
    if report.misused is not None:
        pytest.fail(report.misused, pytrace=False)
    pyfuncitem.user_properties.append(("kafka_seen", sorted(report.seen)))
    pyfuncitem.user_properties.append(("kafka_seeds", report.tried))
    pyfuncitem.user_properties.append(("kafka_first", [_test_of(pyfuncitem), report.first]))
    if report.failed is not None:
        pytest.fail(report.failed, pytrace=False)
    if report.xfailed:
        pytest.xfail(report.xfailed[0])
    if report.skipped and len(report.skipped) == report.tried:
        pytest.skip(report.skipped[0])
    return True


async def _call(test: Any, fixtures: dict[str, Any], skipped: list[str], xfailed: list[str], simulation: Any) -> None:
    try:
        await test(simulation=simulation, **fixtures)
    except (pytest.skip.Exception, pytest.xfail.Exception) as outcome:
        simulation.checks.clear()
        (skipped if isinstance(outcome, pytest.skip.Exception) else xfailed).append(str(outcome))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print how many seeds were run and what they reached; add seeds that reached something new to the corpus."""
    seeds, seen, first = 0, set[str](), dict[str, list[tuple[int, list[str]]]]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            properties = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", "") == "call" and "kafka_seeds" in properties:
                seeds += properties["kafka_seeds"]
                seen.update(properties["kafka_seen"])
                test, seed_points = properties["kafka_first"]
                first.setdefault(test, []).extend((int(seed), points) for seed, points in seed_points.items())
    if not seeds:
        return
    from abeyant.broker.simulation.corpus import extended, read_corpus, write_corpus
    from abeyant.broker.simulation.story import coverage
    from abeyant.errors import AbeyantError

    new = {test: extended({}, sorted(runs)) for test, runs in first.items()}
    for line in coverage(seeds, seen, {test: len(entries) for test, entries in new.items()}):
        terminalreporter.write_line(line)
    path = config.getoption("kafka_corpus")
    if path and not config.getoption("kafka_report"):
        try:
            corpus = read_corpus(Path(path))
            for test, runs in first.items():
                corpus[test] = extended(corpus.get(test, {}), sorted(runs))
            write_corpus(Path(path), corpus)
        except AbeyantError as error:
            terminalreporter.write_line(str(error), red=True)
            return
        terminalreporter.write_line(f"  corpus: {sum(map(len, corpus.values()))} seeds in {path}")


def _seeds(config: pytest.Config, item: Any) -> list[int]:
    """Return a test's seeds: first the seeds of the corpus, then those that the option or the marker requests."""
    from abeyant.broker.simulation.corpus import read_corpus
    from abeyant.broker.simulation.pytest_runner import parse_seeds

    option, corpus = config.getoption("kafka_seeds"), config.getoption("kafka_corpus")
    default = _options(item).get("seeds", _SEEDS)
    seeds = parse_seeds(str(default), "@pytest.mark.kafka(seeds=...)") if option is None else parse_seeds(option)
    corpus_seeds = read_corpus(Path(corpus)).get(_test_of(item), {}) if corpus else {}
    return list(dict.fromkeys([*sorted(corpus_seeds), *seeds]))


def _test_of(item: Any) -> str:
    """Return a test's id without its parameters, and so without its share of the seeds."""
    return str(item.nodeid).partition("[")[0]


def _without_part(item: pytest.Function) -> str:
    """Return a test's id without the parameter that names the seeds of this worker of xdist."""
    part = item.funcargs["simulation"]
    file, colons, rest = item.nodeid.partition("::")
    name, bracket, ids = rest.partition("[")
    words = ids.rpartition("]")[0].split("-")  # behind it xdist may have written a group
    part_words = _part_id(part).split("-") if isinstance(part, list) else []
    at = next((at for at in range(len(words)) if words[at : at + len(part_words)] == part_words), None)
    if not part_words or at is None:
        return item.nodeid
    remaining = "-".join(words[:at] + words[at + len(part_words) :])
    return f"{file}{colons}{name}{bracket}{remaining}]" if remaining else f"{file}{colons}{name}"


def _part_id(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}-{seeds[-1]}"


def _order(item: pytest.Function) -> Order:
    from abeyant.broker.simulation.pytest_runner import Order

    config = item.config
    trace, stories = config.getoption("kafka_trace"), config.getoption("kafka_story")
    part = item.funcargs["simulation"]
    seeds = part if isinstance(part, list) else _seeds(config, item)
    return Order(
        seeds,
        config.getoption("kafka_repeat"),
        Path(trace) if trace else None,
        config.getoption("kafka_seconds"),
        Path(stories) if stories else None,
    )


def _arguments(config: pytest.Config) -> list[str]:
    """Return the arguments for a child's pytest: plugins, root and ini file as in this process, no workers."""
    arguments = [str(argument) for argument in config.invocation_params.args]
    plugins = [part for at, argument in enumerate(arguments) if argument == "-p" for part in arguments[at : at + 2]]
    plugins += [argument for argument in arguments if argument.startswith("-p") and argument != "-p"]
    no_workers = ["-n0"] if config.pluginmanager.has_plugin("xdist") else []
    ini = ["-c", str(config.inipath)] if config.inipath else []
    return ["-q", "--no-header", f"--rootdir={config.rootpath}", *ini, *plugins, "-p", "no:cacheprovider", *no_workers]


@pytest.fixture(scope="session")
def _genuine_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    """Three brokers of Apache Kafka, for all tests of the session."""
    from abeyant.broker.genuine import ClusterError, fetch
    from abeyant.broker.genuine.kafka import GenuineKafka
    from abeyant.errors import AbeyantError

    try:
        kafka = GenuineKafka(fetch(), tmp_path_factory.mktemp("kafka"), pytest.skip)
    except (ClusterError, AbeyantError) as error:
        pytest.fail(f"--kafka=genuine: {error}", pytrace=False)
    with kafka:
        yield kafka


def _genuine(request: pytest.FixtureRequest, options: dict[str, Any]) -> Iterator[Any]:
    if options.get("clock", "real") != "real":
        pytest.skip('--kafka=genuine: only abeyant.broker has clock="held"')
    if "security" in options:
        pytest.skip("--kafka=genuine: its brokers use PLAINTEXT; only abeyant.broker has TLS and SASL")
    if "racks" in options:
        pytest.skip("--kafka=genuine: its brokers have no racks; only abeyant.broker gives them some")
    if options.get("settings"):
        pytest.skip("--kafka=genuine: its brokers' settings are fixed; only abeyant.broker accepts a test's settings")
    brokers = options.get("brokers", 1)
    if brokers > 3:
        pytest.skip(f"--kafka=genuine: it has three brokers, and this test needs {brokers}")
    genuine: GenuineKafka = request.getfixturevalue("_genuine_kafka")
    try:
        yield genuine
    finally:
        genuine.tidy_up()


def _options(item: pytest.Item) -> dict[str, Any]:
    """Return the markers' options as arguments of `Cluster`. A test's marker overrides its class's and module's."""
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("kafka"))):
        if marker.args:
            pytest.fail(f"@pytest.mark.kafka takes only named options, not {marker.args}", pytrace=False)
        for name, value in marker.kwargs.items():
            if name in _UNAVAILABLE:
                pytest.fail(f"@pytest.mark.kafka has no {name}=: {_UNAVAILABLE[name]}", pytrace=False)
            if name not in _OPTIONS and "." not in name:
                _refuse_mistyped(name)
            target, key = (options, name) if name in _OPTIONS else (settings, name.replace("_", "."))
            target[key] = value
    return {**options, "settings": settings} if settings else options


def _refuse_mistyped(name: str) -> None:
    """Fail the test if `name` is not a Kafka setting, and resembles one of the marker's own options."""
    from abeyant.broker.definitions import definitions
    from abeyant.errors import did_you_mean

    hint = did_you_mean(name, _OPTIONS, alike=0.7)
    if hint and name.replace("_", ".") not in definitions("broker"):
        pytest.fail(f"@pytest.mark.kafka has no option {name}{hint}", pytrace=False)
