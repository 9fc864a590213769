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
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], GenuineKafka]]:
    """Brokers without or with SASL and an authorizer: three at a time, so that the others are stopped."""
    running: dict[bool, GenuineKafka] = {}
    with ExitStack() as stack:

        def brokers(guarded: bool) -> GenuineKafka:
            if guarded not in running:
                running.clear()
                stack.close()
                try:
                    running[guarded] = stack.enter_context(genuine_kafka(tmp_path_factory.mktemp("kafka"), guarded))
                except ClusterError as error:
                    pytest.skip(f"no genuine Kafka here: {' '.join(str(error).split())}")
            return running[guarded]

        yield brokers


SET: list[Scenario] = sorted(all_scenarios(), key=lambda one: one.is_guarded)


@pytest.mark.parametrize("scenario", SET, ids=lambda one: f"{one.family}: {one.title}")
def test_genuine_kafka_answers_as_recorded(kafka: Callable[[bool], GenuineKafka], scenario: Scenario) -> None:
    """K12."""
    assert play(kafka(scenario.is_guarded), scenario) == load(scenario.family)[scenario.title]
