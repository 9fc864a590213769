"""The pytest plugin for programs that speak Kafka: the fixture `kafka`, its marker, `--kafka=genuine`.

    @pytest.mark.kafka(brokers=3, clock="held", **{"min.insync.replicas": 2})
    def test_orders(kafka): ...

The fixture is an `abeyant.broker.Cluster` of this test's own. `--kafka=genuine` runs the same tests against three
brokers of Apache Kafka; a test that needs what only ours can do is skipped, and says what. Where a `conftest.py` has
an option `--kafka` of its own, ours is `--abeyant-kafka` only.

Like `pytest_abeyant` this is loaded by every pytest run in whose environment abeyant is installed. So it imports
nothing of abeyant before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from abeyant.broker import Cluster
    from abeyant.broker.genuine.kafka import GenuineKafka

_MARKER = (
    "kafka(brokers=1, clock='real', **settings): the cluster of the fixture `kafka`; settings are Kafka's own, "
    "with dots or with underscores (min_insync_replicas=2)"
)
_OPTIONS = ("brokers", "clock", "security", "users")  # the others are settings
_OWN = "make a Cluster of your own for it"
_NOT_HERE = {
    "settings": "write them beside the others, min_insync_replicas=2",
    **dict.fromkeys(("host", "port", "data", "request_log"), _OWN),
}
_CHOICES = ("abeyant", "genuine")
_SHORT, _LONG = "--kafka", "--abeyant-kafka"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--abeyant-kafka`, which nobody else has."""
    parser.getgroup("abeyant").addoption(
        _LONG,
        choices=_CHOICES,
        default="abeyant",
        help="what the fixture `kafka` is: abeyant.broker (default), or three brokers of Apache Kafka by Maven",
    )


@pytest.hookimpl(hookwrapper=True)  # the old way: a pluggy before 1.2 knows no other
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, Any, None]:
    """Add `--kafka`, unless a `conftest.py` has an option of that name: two would end every run."""
    yield
    try:
        is_free = _SHORT in parser.parse_known_and_unknown_args([_SHORT])[1]
    except pytest.UsageError:  # it is known, and wants a value
        is_free = False
    if is_free:
        parser.getgroup("abeyant").addoption(
            _SHORT, dest="abeyant_kafka", choices=_CHOICES, default="abeyant", help=f"the same as {_LONG}"
        )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say so when the tests run against genuine Kafka."""
    return "kafka: three brokers of Apache Kafka" if config.getoption("abeyant_kafka") == "genuine" else None


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A Kafka cluster of this test's own, as its marker `kafka` describes it."""
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
        pytest.skip("--kafka=genuine: its brokers speak PLAINTEXT; only abeyant.broker has TLS and SASL")
    if options.get("settings"):
        pytest.skip("--kafka=genuine: its brokers' settings are fixed; only abeyant.broker takes a test's")
    brokers = options.get("brokers", 1)
    if brokers > 3:
        pytest.skip(f"--kafka=genuine: there are three brokers, this test wants {brokers}")
    genuine: GenuineKafka = request.getfixturevalue("_genuine_kafka")
    try:
        yield genuine
    finally:
        genuine.tidy_up()


def _options(item: pytest.Item) -> dict[str, Any]:
    """Return what the markers ask for, as `Cluster` takes it; a test's own come before its class's and module's."""
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("kafka"))):
        if marker.args:
            pytest.fail(f"@pytest.mark.kafka takes named options only, not {marker.args}", pytrace=False)
        for name, value in marker.kwargs.items():
            if name in _NOT_HERE:
                pytest.fail(f"@pytest.mark.kafka has no {name}=: {_NOT_HERE[name]}", pytrace=False)
            into, key = (options, name) if name in _OPTIONS else (settings, name.replace("_", "."))
            into[key] = value
    return {**options, "settings": settings} if settings else options
