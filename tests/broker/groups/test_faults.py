"""Faults reach groups too: members that are put out, coordinators that stand still, requests that fail (K11)."""

from __future__ import annotations

import pytest

from abeyant.broker import Cluster
from abeyant.errors import AbeyantError
from broker.groups.members import Confluent
from broker.groups.wire import GroupClient, coordinator
from waiting import wait_until

TOPIC = "orders"


def test_a_member_is_put_out_and_comes_back() -> None:
    with Cluster(1) as kafka:
        kafka.create_topic(TOPIC, partitions=2)
        with (
            Confluent(kafka.bootstrap, TOPIC, client_id="one") as one,
            Confluent(kafka.bootstrap, TOPIC, client_id="two") as two,
        ):
            wait_until(lambda: len(one.partitions) == len(two.partitions) == 1)
            assigned, others = len(one.assigned), len(two.assigned)
            kafka.expire_member("group", "one")
            assert [waiting.client_id for waiting in kafka.waiting("Heartbeat")] == ["two"]
            wait_until(lambda: len(one.assigned) > assigned and len(two.assigned) > others)
            wait_until(lambda: len(one.partitions) == len(two.partitions) == 1)


def test_what_cannot_be_put_out_is_named() -> None:
    with Cluster(3) as kafka:
        with pytest.raises(AbeyantError, match="there is no group 'group'"):
            kafka.expire_member("group", "one")
        with GroupClient(kafka) as client:
            joined = client.join()
            with pytest.raises(AbeyantError, match="there is no group 'grup'; did you mean group"):
                kafka.expire_member("grup", "one")
            with pytest.raises(AbeyantError, match="group 'group' has no member 'wir'; did you mean wire"):
                kafka.expire_member("group", "wir")
            kafka.expire_member("group", joined.member_id)
            assert client.heartbeat(joined) == "unknown_member_id"
            client.join(instance="pod-1")
            kafka.expire_member("group", "pod-1")
            assert client.describe().group_state == "Empty"
        number = coordinator(kafka, "group")
        with kafka.paused(number), pytest.raises(AbeyantError, match=f"broker {number}, is paused"):
            kafka.expire_member("group", "pod-1")


def test_two_members_of_one_client_id_have_to_be_told_apart() -> None:
    with Cluster(1) as kafka, GroupClient(kafka) as one, GroupClient(kafka) as two:
        one.join()
        two.send_join(instance="pod-2")
        wait_until(lambda: len(one.describe().members) == 2)
        with pytest.raises(AbeyantError, match="2 members of group 'group' are called 'wire'"):
            kafka.expire_member("group", "wire")


def test_a_coordinator_that_stands_still_has_its_sessions_stand_still() -> None:
    with Cluster(1, clock="held") as kafka, GroupClient(kafka) as client:
        joined = client.join()
        client.sync(joined, b"all")
        kafka.clock.advance(44.0)
        with kafka.paused(1):
            kafka.clock.advance(5.0)
            number = client.client.send(
                12, 4, group_id="group", member_id=joined.member_id, generation_id=joined.generation_id
            )
        # Its session ended while nobody looked: that is seen first, as by a process that wakes up.
        assert client.client.receive(12, 4, number).error_code.name == "unknown_member_id"


def test_requests_of_groups_fail_as_ordered() -> None:
    with Cluster(1) as kafka, GroupClient(kafka) as client:
        joined = client.join()
        client.sync(joined, b"all")
        with kafka.fail("Heartbeat", error="REBALANCE_IN_PROGRESS", times=1):
            assert [client.heartbeat(joined), client.heartbeat(joined)] == ["rebalance_in_progress", "none"]
        with kafka.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=1):
            assert coordinator(kafka, "group") == -1
