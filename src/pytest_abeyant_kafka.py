"""The pytest plugin for programs that use Kafka: the fixture `kafka`, its marker, and `--kafka=genuine`.

    @pytest.mark.kafka(brokers=3, clock="held", **{"min.insync.replicas": 2})
    def test_orders(kafka): ...

The fixture is a new `abeyant.broker.Cluster` for each test. `--kafka=genuine` runs the same tests against three brokers
of Apache Kafka, and skips tests that need what only our cluster can do, with the reason. If a `conftest.py` has its own
option `--kafka`, ours is only `--abeyant-kafka`.

Like `pytest_abeyant`, every pytest run in an environment with abeyant loads this. So it imports abeyant only when a
test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from abeyant.broker import Cluster
    from abeyant.broker.genuine.kafka import GenuineKafka

_MARKER = (
    "kafka(brokers=1, clock='real', **settings): the cluster of the fixture `kafka`; settings use Kafka's names, "
    "with dots or underscores (min_insync_replicas=2)"
)
_OPTIONS = ("brokers", "clock", "security", "users")  # the others are settings
_OWN = "create your own Cluster for it"
_UNAVAILABLE = {
    "settings": "write them beside the others, min_insync_replicas=2",
    **dict.fromkeys(("host", "port", "data", "request_log"), _OWN),
}
_CHOICES = ("abeyant", "genuine")
_SHORT, _LONG = "--kafka", "--abeyant-kafka"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--abeyant-kafka`, a name that no other plugin has."""
    parser.getgroup("abeyant").addoption(
        _LONG,
        choices=_CHOICES,
        default="abeyant",
        help="cluster of the fixture `kafka`: abeyant (default), or genuine: three brokers of Apache Kafka by Maven",
    )


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
        pytest.fail(f"@pytest.mark.kafka: {error}", pytrace=False)
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def _genuine_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    """Three brokers of Apache Kafka, for all tests of the session."""
    from abeyant.broker.genuine import ClusterError
    from abeyant.broker.genuine.kafka import GenuineKafka
    from abeyant.errors import AbeyantError

    try:
        kafka = GenuineKafka(tmp_path_factory.mktemp("kafka"), pytest.skip)
    except (ClusterError, AbeyantError) as error:
        pytest.fail(f"--kafka=genuine: {error}", pytrace=False)
    with kafka:
        yield kafka


def _genuine(request: pytest.FixtureRequest, options: dict[str, Any]) -> Iterator[Any]:
    if options.get("clock", "real") != "real":
        pytest.skip('--kafka=genuine: only abeyant.broker has clock="held"')
    if "security" in options:
        pytest.skip("--kafka=genuine: its brokers use PLAINTEXT; only abeyant.broker has TLS and SASL")
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
            into, key = (options, name) if name in _OPTIONS else (settings, name.replace("_", "."))
            into[key] = value
    return {**options, "settings": settings} if settings else options
