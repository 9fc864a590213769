"""`pytest --kafka=genuine` has every public name of `Cluster`: it works, or skips the test and says why."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from abeyant.broker import Cluster
from abeyant.broker.genuine import Kafka
from abeyant.broker.genuine.kafka import _NOT_HERE, GenuineKafka
from abeyant.errors import AbeyantError

OWN = {"tidy_up"}  # for the plugin


@pytest.fixture
def genuine(tmp_path: Path) -> GenuineKafka:
    """Brokers that are not started, as none of this needs them."""
    return GenuineKafka(Kafka("java", tmp_path, "0"), tmp_path, pytest.skip)


@pytest.fixture(scope="module")
def names() -> Iterator[set[str]]:
    with Cluster() as kafka:
        yield {name for name in dir(kafka) if not name.startswith("_")}


def test_every_public_name_works_or_says_that_only_ours_has_it(genuine: GenuineKafka, names: set[str]) -> None:
    for name in sorted(names - _NOT_HERE):
        assert hasattr(genuine, name), f"Cluster.{name} has no counterpart: write one, or name it in _NOT_HERE"
    for name in sorted(_NOT_HERE):
        with pytest.raises(pytest.skip.Exception) as skipped:
            getattr(genuine, name)
        assert str(skipped.value) == f"--kafka=genuine: only abeyant.broker has `{name}`"


def test_no_name_is_listed_that_cluster_lacks_or_that_works_there(genuine: GenuineKafka, names: set[str]) -> None:
    assert names >= _NOT_HERE
    there = {name for name in dir(genuine) if not name.startswith("_")}
    assert there.isdisjoint(_NOT_HERE)
    assert there - names == OWN
    with pytest.raises(AttributeError, match="has no attribute 'wating'"):
        genuine.wating  # noqa: B018


def test_methods_take_the_same_arguments(genuine: GenuineKafka, names: set[str]) -> None:
    compared = 0
    for name in sorted(names - _NOT_HERE):
        ours, theirs = getattr(Cluster, name, None), getattr(GenuineKafka, name, None)
        if inspect.isfunction(ours):
            assert inspect.isfunction(theirs), name
            assert inspect.signature(theirs).parameters == inspect.signature(ours).parameters, name
            compared += 1
    assert compared > 10


CALLS = {
    "pause(9)": "there is no broker 9: there are brokers 1 to 3",
    "resume(0)": "there is no broker 0: there are brokers 1 to 3",
    "stop('1')": "there is no broker '1': there are brokers 1 to 3",
    "start(4)": "there is no broker 4: there are brokers 1 to 3",
    "is_stopped(None)": "there is no broker None: there are brokers 1 to 3",
    "pause(1)": "broker 1 is stopped, so it cannot be paused: start it first",
    "create_topic('t', '3')": "cannot create topic 't': partitions must be a whole number, not '3'",
    "create_topic('t', config={'a.b': 1, 'a_b': 1})": "cannot create topic 't': a.b is given twice",
    "topics()": "no broker of genuine Kafka responds: stopped, or paused",
}


def test_bad_calls_are_refused_as_ours_are(genuine: GenuineKafka) -> None:
    with Cluster(brokers=3) as ours:
        ours.stop(1)
        for call, message in CALLS.items():
            with pytest.raises(AbeyantError) as raised:
                eval(f"kafka.{call}", {"kafka": genuine})
            assert str(raised.value).startswith(message)
            if call != "topics()":
                with pytest.raises(AbeyantError) as raised:
                    eval(f"kafka.{call}", {"kafka": ours})
                assert str(raised.value).startswith(message)
        for kafka in (genuine, ours):
            for wrong in ({"isolation": "dirty"}, {"isolation": "read_committed", "beyond_high_watermark": True}):
                with pytest.raises(ValueError, match="isolation"):
                    kafka.records("t", **wrong)
            kafka.stop(1)  # a second stop and a resume of what is not paused do nothing
            kafka.resume(1)
    with pytest.raises(pytest.skip.Exception, match="beyond the high watermark"):
        genuine.records("t", beyond_high_watermark=True)
