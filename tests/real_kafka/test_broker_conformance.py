"""The record of the conformance set is true: genuine Kafka answers so today."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from abeyant.broker.genuine import ClusterError
from broker.conformance.families import all_scenarios
from broker.conformance.genuine import GenuineKafka, genuine_kafka
from broker.conformance.record import load, play
from broker.conformance.scenario import Scenario


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scenario], GenuineKafka]]:
    """The brokers that a scenario needs: three at a time, so that the others are stopped."""
    running: dict[tuple[bool, bool], GenuineKafka] = {}
    with ExitStack() as stack:

        def brokers(scenario: Scenario) -> GenuineKafka:
            kind = _kind(scenario)
            if kind not in running:
                running.clear()
                stack.close()
                try:
                    running[kind] = stack.enter_context(genuine_kafka(tmp_path_factory.mktemp("kafka"), *kind))
                except ClusterError as error:
                    pytest.skip(f"no genuine Kafka here: {' '.join(str(error).split())}")
            return running[kind]

        yield brokers


def _kind(scenario: Scenario) -> tuple[bool, bool]:
    return scenario.is_guarded, scenario.has_plugin


# What takes 32,766 requests comes first: once the brokers have thousands of partitions, it takes a quarter of an hour.
SET: list[Scenario] = sorted(all_scenarios(), key=lambda one: (_kind(one), one.family != "exhausted_epochs"))


@pytest.mark.parametrize("scenario", SET, ids=lambda one: f"{one.family}: {one.title}")
def test_genuine_kafka_answers_as_recorded(kafka: Callable[[Scenario], GenuineKafka], scenario: Scenario) -> None:
    """K12."""
    assert play(kafka(scenario), scenario) == load(scenario.family)[scenario.title]
