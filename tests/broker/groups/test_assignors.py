"""The coordinator's assignors: everything is given once, to who reads it, evenly, and little is moved."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from abeyant.broker.groups.consumer.assignors import ASSIGNORS, NOTHING, Assignment, by_range, uniform

TOPICS = [uuid.UUID(int=number + 1) for number in range(4)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12))
NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)
SUBSCRIPTIONS = st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS)), min_size=1)


def all_of(topics: dict[uuid.UUID, int], members: dict[str, frozenset[uuid.UUID]]) -> Assignment:
    read = frozenset().union(*members.values())
    return frozenset((topic, index) for topic, count in topics.items() if topic in read for index in range(count))


@given(SUBSCRIPTIONS, COUNTS, st.sampled_from(sorted(ASSIGNORS)))
def test_everything_is_given_once_to_who_reads_it(members: Any, topics: Any, name: str) -> None:
    found = ASSIGNORS[name](members, topics, {})
    assert set(found) == set(members)
    assert sum(map(len, found.values())) == len(all_of(topics, members))
    assert frozenset().union(*found.values()) == all_of(topics, members)
    assert all(topic in members[member] for member, given in found.items() for topic, _ in given)


@given(NAMES, NAMES, COUNTS)
def test_who_reads_the_same_has_as_much_and_keeps_what_can_be_kept(before: Any, after: Any, topics: Any) -> None:
    everything = frozenset(topics)
    present = uniform(dict.fromkeys(before, everything), topics, {})
    found = uniform(dict.fromkeys(after, everything), topics, present)
    sizes = [len(given) for given in found.values()]
    assert max(sizes) - min(sizes) <= 1
    least, more = divmod(sum(sizes), len(after))
    mine = sorted((len(present.get(member, NOTHING)) for member in after), reverse=True)
    can_stay = sum(min(size, least + (place < more)) for place, size in enumerate(mine))
    assert sum(len(given & present.get(member, NOTHING)) for member, given in found.items()) == can_stay
    assert uniform(dict.fromkeys(after, everything), topics, found) == found


@given(SUBSCRIPTIONS, SUBSCRIPTIONS, COUNTS)
def test_nobody_could_take_over_from_who_has_two_more(before: Any, after: Any, topics: Any) -> None:
    found = uniform(after, topics, uniform(before, topics, {}))
    for member, given_ in found.items():
        for topic, _ in given_:
            others = [len(found[other]) for other, subscribed in after.items() if topic in subscribed]
            assert len(found[member]) - min(others) <= 1
    assert uniform(after, topics, found) == found


def test_range_gives_runs_and_the_first_have_one_more() -> None:
    topic = TOPICS[0]
    found = by_range({"b": frozenset({topic}), "a": frozenset({topic}), "c": frozenset()}, {topic: 5}, {})
    assert {member: sorted(index for _, index in given) for member, given in found.items()} == {
        "a": [0, 1, 2], "b": [3, 4], "c": [],
    }  # fmt: skip
