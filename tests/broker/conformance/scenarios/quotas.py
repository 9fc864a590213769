"""Client quotas: how they are set and described, which one holds, and what a client that exceeds it sees."""

from __future__ import annotations

from collections.abc import Mapping

from ..bodies import create, fetch, produce
from ..client import Connection
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, scenario, table

Names = Mapping[str, str | None]
BOTH = (0, 1)
PRODUCE, FETCH, MUTATION = "producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate"
HUGE = 1e20


def entry(names: Names, **values: float | None) -> dict[str, Plain]:
    """One entity of AlterClientQuotas; None removes a quota."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in names.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()],
    }


def named(stage: Stage, names: Names) -> Names:
    """The same entity with names that no other scenario has."""
    return {kind: name and stage.name(name) for kind, name in names.items()}


def quota(stage: Stage, names: Names, **values: float | None) -> None:
    """Set quotas, and wait until the brokers know them."""
    said = stage.do("AlterClientQuotas", {"entries": [entry(names, **values)], "validate_only": False})
    if said["entries"][0]["error_code"] != "NONE":
        raise RuntimeError(f"no quota: {said}")
    components = [{"entity_type": kind, "match_type": 0 if name else 1, "match": name} for kind, name in names.items()]
    wanted = {key: value for key, value in values.items() if value is not None}

    def there() -> bool:
        rows = stage.do("DescribeClientQuotas", {"components": components, "strict": True})["entries"]
        return {one["key"]: one["value"] for row in rows for one in row["values"]} == wanted

    stage.until(there, f"the quotas of {names}")
    stage.brokers.elapse(0.2)


def described(stage: Stage, components: list[dict[str, Plain]], *, strict: bool = False) -> None:
    stage.ask("DescribeClientQuotas", {"components": components, "strict": strict})


@table(
    "AlterClientQuotas", at=BOTH,
    client=({"client-id": "till"}, {PRODUCE: 1000.0}),
    all_clients=({"client-id": None}, {PRODUCE: 1e12}),
    user=({"user": "alice"}, {PRODUCE: 1000.0, FETCH: 2000.0, "request_percentage": 0.5, MUTATION: 1.5}),
    user_and_client=({"user": "alice", "client-id": "till"}, {PRODUCE: 1000.0}),
    user_and_all_clients=({"user": "alice", "client-id": None}, {FETCH: 1000.0}),
    address=({"ip": "198.51.100.7"}, {"connection_creation_rate": 10.0}),
    nothing=({}, {PRODUCE: 1000.0}),
    no_quota=({"client-id": "till"}, {}),
    another_type=({"group": "shop"}, {PRODUCE: 1000.0}),
    name_that_is_empty=({"client-id": ""}, {PRODUCE: 1000.0}),
    address_and_user=({"ip": "198.51.100.7", "user": "alice"}, {PRODUCE: 1000.0}),
    address_of_no_host=({"ip": "no such host"}, {"connection_creation_rate": 10.0}),
    bytes_of_an_address=({"ip": "198.51.100.7"}, {PRODUCE: 1000.0}),
    connections_of_a_client=({"client-id": "till"}, {"connection_creation_rate": 10.0}),
    quota_that_does_not_exist=({"client-id": "till"}, {"bytes": 1000.0}),
    zero=({"client-id": "till"}, {PRODUCE: 0.0}),
    negative=({"client-id": "till"}, {"request_percentage": -1.0}),
    half_a_byte=({"client-id": "till"}, {PRODUCE: 1000.5}),
    half_a_connection=({"ip": "198.51.100.7"}, {"connection_creation_rate": 0.5}),
    too_large=({"client-id": "till"}, {PRODUCE: HUGE}),
    too_many_connections=({"ip": "198.51.100.7"}, {"connection_creation_rate": HUGE}),
    one_of_two_is_wrong=({"client-id": "till"}, {FETCH: 1000.0, PRODUCE: 0.0}),
    removed_that_was_not_there=({"client-id": "till"}, {PRODUCE: None}),
)  # fmt: skip
def altered(stage: Stage, names: Names, values: Mapping[str, float | None]) -> None:
    """Checked only, then set, and removed again."""
    if "ip" not in names and None not in names.values() and "" not in names.values():
        names = named(stage, names)
    one = entry(names, **values)
    stage.ask("AlterClientQuotas", {"entries": [one], "validate_only": True})
    said = stage.ask("AlterClientQuotas", {"entries": [one], "validate_only": False})
    if said["entries"][0]["error_code"] == "NONE":
        stage.do("AlterClientQuotas", {"entries": [entry(names, **dict.fromkeys(values))], "validate_only": False})


@scenario("AlterClientQuotas", at=BOTH)
def altered_two_at_once(stage: Stage) -> None:
    """Each by itself."""
    till, shop = named(stage, {"client-id": "till"}), named(stage, {"client-id": "shop"})
    both = [entry(till, **{PRODUCE: 0.0}), entry(shop, **{PRODUCE: 1000.0})]
    stage.ask("AlterClientQuotas", {"entries": both, "validate_only": False})
    quota(stage, shop, **{PRODUCE: None})


@scenario("AlterClientQuotas", at=BOTH)
def altered_one_twice(stage: Stage) -> None:
    till = named(stage, {"client-id": "till"})
    both = [entry(till, **{PRODUCE: 1000.0}), entry(till, **{FETCH: 1000.0})]
    stage.ask("AlterClientQuotas", {"entries": both, "validate_only": True})


@scenario("AlterClientQuotas", at=BOTH)
def altered_with_a_quota_twice(stage: Stage) -> None:
    one = entry(named(stage, {"client-id": "till"}), **{PRODUCE: 1000.0})
    one["ops"] *= 2
    stage.ask("AlterClientQuotas", {"entries": [one], "validate_only": False})


@scenario("DescribeClientQuotas", at=BOTH)
def described_by_names_and_types(stage: Stage) -> None:
    both = named(stage, {"user": "alice", "client-id": "till"})
    user, client = ({kind: both[kind]} for kind in ("user", "client-id"))
    quota(stage, both, **{PRODUCE: 1000.0, FETCH: 2000.0})
    quota(stage, user, **{PRODUCE: 3000.0})
    quota(stage, client, **{FETCH: 4000.0})
    of_user = {"entity_type": "user", "match_type": 0, "match": user["user"]}
    of_client = {"entity_type": "client-id", "match_type": 0, "match": client["client-id"]}
    any_client = {"entity_type": "client-id", "match_type": 2, "match": None}
    default_client = {"entity_type": "client-id", "match_type": 1, "match": None}
    for components in ([of_user], [of_client], [of_user, of_client], [of_user, any_client], [of_user, default_client]):
        for strict in (False, True):
            described(stage, components, strict=strict)
    for names in (both, user, client):
        quota(stage, names, **dict.fromkeys((PRODUCE, FETCH)))
    described(stage, [of_user])


@table(
    "DescribeClientQuotas", at=BOTH,
    empty_type=([("", 0, "alice")],),
    another_type=([("group", 0, "alice")],),
    one_type_twice=([("user", 0, "alice"), ("user", 2, None)],),
    another_match=([("user", 7, None)],),
    exact_without_a_name=([("user", 0, None)],),
    default_with_a_name=([("user", 1, "alice")],),
    any_with_a_name=([("user", 2, "alice")],),
    address_and_user=([("ip", 2, None), ("user", 2, None)],),
)  # fmt: skip
def described_what_cannot_be(stage: Stage, rows: list[tuple[str, int, str | None]]) -> None:
    described(stage, [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in rows])


def connect(stage: Stage, name: str = "till") -> tuple[Connection, str]:
    """A connection with a client id that no other scenario has."""
    full = stage.name(name)
    return stage.connect(client_id=full), full


def records(stage: Stage, size: int, names: int = 0) -> Batch:
    """One record. Throttle times count each byte: `names` is how many names of this scenario there are beside it."""
    return Batch((bytes(size - names * len(stage.name(""))),), at=stage.base_time)


def topic_names(stage: Stage) -> int:
    """How many topic names a request for one topic has: newer versions have ids."""
    version = stage.scenario.version
    return int(version is not None and version < 13)


@scenario("Produce")
def produced_too_much(stage: Stage) -> None:
    """It is answered at once, and the next request only after the throttle time."""
    topic = stage.topic()
    connection, name = connect(stage)
    quota(stage, {"client-id": name}, **{PRODUCE: 1000.0})
    stage.ask("Produce", produce(topic, records(stage, 10_500, 1 + topic_names(stage)), acks=1), over=connection)
    connection.send("Produce", stage.version("Produce"), produce(topic, records(stage, 1), acks=1))
    stage.brokers.await_read(1)
    stage.note("is muted", connection.is_waiting(0.05))
    stage.brokers.hasten(2.0)
    (row,) = connection.receive()["responses"]
    stage.note("goes on", row["partition_responses"][0]["error_code"])
    quota(stage, {"client-id": name}, **{PRODUCE: None})


@scenario("Produce")
def produced_too_much_without_an_answer(stage: Stage) -> None:
    topic = stage.topic()
    connection, name = connect(stage)
    quota(stage, {"client-id": name}, **{PRODUCE: 1000.0})
    connection.send("Produce", stage.version("Produce"), produce(topic, records(stage, 10_500), acks=0))
    connection.expect_no_answer()
    connection.send("ApiVersions", 0, {})
    stage.brokers.await_read(1)
    stage.note("is muted", connection.is_waiting(0.05))
    stage.brokers.hasten(2.0)
    stage.note("goes on", connection.receive()["error_code"])
    quota(stage, {"client-id": name}, **{PRODUCE: None})


ANONYMOUS = "ANONYMOUS"  # who has not authenticated


@table(
    client=(0, {"client-id": "till"}),
    another_client=(0, {"client-id": "shop"}),
    any_client=(0, {"client-id": None}),
    client_before_any=(0, {"client-id": "till"}, {"client-id": None}),
    user_before_client=(12, {"user": ANONYMOUS}, {"client-id": "till"}),
    any_user_before_client=(12, {"user": None}, {"client-id": "till"}),
    user_and_client=(0, {"user": ANONYMOUS, "client-id": "till"}, {"user": ANONYMOUS, "client-id": None}),
    user_and_any_client=(0, {"user": ANONYMOUS, "client-id": None}, {"user": ANONYMOUS}),
    any_user_and_client=(0, {"user": None, "client-id": "till"}, {"user": None, "client-id": None}),
    any_user_and_any_client=(0, {"user": None, "client-id": None}, {"user": None}),
)  # fmt: skip
def one_holds(stage: Stage, seconds: int, *entities: Names) -> None:
    """The first throttle time is exact, as the windows have just begun; it tells which quota holds."""
    topic = stage.topic()
    connection, full = connect(stage)
    names = [
        {kind: full if name == "till" else stage.name(name) if name == "shop" else name for kind, name in one.items()}
        for one in entities
    ]
    for number, one in enumerate(names):
        quota(stage, one, **{PRODUCE: 1000.0 + 1000 * number})
    if seconds:  # what other scenarios have produced as this user
        stage.brokers.elapse(seconds)
    stage.ask("Produce", produce(topic, records(stage, 30_000, 1), acks=1), over=connection)
    for one in names:
        quota(stage, one, **{PRODUCE: None})


@scenario("Fetch")
def fetched_too_much(stage: Stage) -> None:
    """A batch that is larger than the windows allow: an empty answer, and no session begins."""
    topic = stage.topic()
    stage.do("Produce", produce(topic, records(stage, 10_500, topic_names(stage))))
    connection, name = connect(stage)
    quota(stage, {"client-id": name}, **{FETCH: 1000.0})
    stage.ask("Fetch", fetch(topic, session_id=0, session_epoch=0), over=connection)
    connection.send("Fetch", stage.version("Fetch"), fetch(topic))
    stage.brokers.await_read(1)
    stage.note("is muted", connection.is_waiting(0.05))
    quota(stage, {"client-id": name}, **{FETCH: None})


@scenario("Fetch")
def fetched_within_the_quota(stage: Stage) -> None:
    """As much as the windows allow at once, and nothing is throttled."""
    topic = stage.topic()
    for _ in range(3):
        stage.do("Produce", produce(topic, records(stage, 3000)))
    connection, name = connect(stage)
    quota(stage, {"client-id": name}, **{FETCH: 1000.0})
    stage.ask("Fetch", fetch(topic), over=connection)
    quota(stage, {"client-id": name}, **{FETCH: None})


@scenario("Fetch", at=(7, 12, 17))
def fetched_in_a_session(stage: Stage) -> None:
    """A throttled answer in a session changes nothing in it but its epoch."""
    topic = stage.topic()
    stage.do("Produce", produce(topic, records(stage, 3000)))
    connection, name = connect(stage)
    said = stage.ask("Fetch", fetch(topic, session_id=0, session_epoch=0), over=connection)
    quota(stage, {"client-id": name}, **{FETCH: 100.0})
    in_session = fetch(session_id=said["session_id"], session_epoch=1)
    said = connection.ask("Fetch", stage.version("Fetch"), in_session)
    stage.note("throttled for longer than", said.pop("throttle_time") // 10_000 * 10_000)
    stage.note("in the session", said)
    quota(stage, {"client-id": name}, **{FETCH: None})
    with stage.connect(client_id=name) as other:
        stage.ask("Fetch", in_session | {"session_epoch": 2}, over=other)


@scenario("CreateTopics", at=(5, 6, 7))
def created_too_many_partitions(stage: Stage) -> None:
    """Older versions are throttled, newer ones are refused as well."""
    _, name = connect(stage)
    quota(stage, {"client-id": name}, **{MUTATION: 1.0})
    for topic in ("one", "two"):
        with stage.connect(client_id=name) as one:
            body = create(stage.name(topic), partitions=20)
            said = one.ask("CreateTopics", stage.version("CreateTopics"), body)
        throttled = said.pop("throttle_time")
        stage.note(topic, said)
        stage.note("throttled by seconds", -(-throttled // 5000) * 5)
    quota(stage, {"client-id": name}, **{MUTATION: None})


@scenario("DeleteTopics", at=(4, 5, 6))
def deleted_too_many_partitions(stage: Stage) -> None:
    topics = [stage.topic(name, partitions=20) for name in ("one", "two")]
    _, name = connect(stage)
    quota(stage, {"client-id": name}, **{MUTATION: 1.0})
    for number, topic in enumerate(topics):
        row = {"name": topic.name, "topic_id": None}
        body = {"topics": [row], "topic_names": [topic.name], "timeout": 10_000}
        with stage.connect(client_id=name) as one:
            said = one.ask("DeleteTopics", stage.version("DeleteTopics"), body)
        throttled = said.pop("throttle_time")
        stage.note(f"topic {number}", said)
        stage.note("throttled by seconds", -(-throttled // 5000) * 5)
    quota(stage, {"client-id": name}, **{MUTATION: None})


@scenario("CreatePartitions")
def added_too_many_partitions(stage: Stage) -> None:
    topic = stage.topic()
    _, name = connect(stage)
    quota(stage, {"client-id": name}, **{MUTATION: 1.0})
    for count in (21, 22):
        row = {"name": topic.name, "count": count, "assignments": None}
        with stage.connect(client_id=name) as one:
            body = {"topics": [row], "timeout": 10_000, "validate_only": False}
            said = one.ask("CreatePartitions", stage.version("CreatePartitions"), body)
        throttled = said.pop("throttle_time")
        stage.note(f"to {count}", said)
        stage.note("throttled by seconds", -(-throttled // 5000) * 5)
    quota(stage, {"client-id": name}, **{MUTATION: None})
