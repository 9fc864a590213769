"""The record of the conformance set is true: genuine Kafka answers so today."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from abeyant.broker.genuine import ClusterError
from broker.conformance.families import all_scenarios
from broker.conformance.genuine import GenuineKafka, genuine_kafka
from broker.conformance.record import load, play
from broker.conformance.scenario import Scenario


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    try:
        with genuine_kafka(tmp_path_factory.mktemp("kafka"), request.param) as brokers:
            yield brokers
    except ClusterError as error:
        pytest.skip(f"no genuine Kafka here: {' '.join(str(error).split())}")


@pytest.mark.parametrize(
    ("kafka", "scenario"),
    [pytest.param(one.is_guarded, one, id=f"{one.family}: {one.title}") for one in all_scenarios()],
    indirect=["kafka"],
)
def test_genuine_kafka_answers_as_recorded(kafka: GenuineKafka, scenario: Scenario) -> None:
    """K12."""
    assert play(kafka, scenario) == load(scenario.family)[scenario.title]
