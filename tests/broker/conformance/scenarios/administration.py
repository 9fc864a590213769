"""What administrators ask for beside topics, settings and groups: ACLs, quotas, the quorum, where replicas are."""

from __future__ import annotations

from ..messages import Plain
from ..scenario import Stage, Topic, scenario, table

ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3
RULE = {
    "resource_type": TOPIC, "resource_name": "orders", "resource_pattern_type": LITERAL, "principal": "User:alice",
    "host": "*", "operation": READ, "permission_type": ALLOW,
}  # fmt: skip


def rule_like(kind: int = ANY, name: str | None = None) -> dict[str, Plain]:
    """A filter of rules."""
    return {
        "resource_type_filter": kind, "resource_name_filter": name, "pattern_type_filter": ANY,
        "principal_filter": None, "host_filter": None, "operation": ANY, "permission_type": ANY,
    }  # fmt: skip


@table("DescribeAcls", any=(ANY, None), of_a_topic=(TOPIC, "orders"))
def rules(stage: Stage, kind: int, name: str | None) -> None:
    stage.ask("DescribeAcls", rule_like(kind, name))


@table("CreateAcls", none=(0,), one=(1,), two=(2,))
def rules_made(stage: Stage, count: int) -> None:
    stage.ask("CreateAcls", {"creations": [RULE] * count})


@table("DeleteAcls", none=(0,), one=(1,), two=(2,))
def rules_deleted(stage: Stage, count: int) -> None:
    stage.ask("DeleteAcls", {"filters": [rule_like(TOPIC, "orders")] * count})


@table("DescribeClientQuotas", at=(0, 1), any=(), of_a_client=("a client",), of_all_clients=(None,))
def quotas(stage: Stage, *names: str | None) -> None:
    """There are none."""
    exactly, default = 0, 1
    components = [
        {"entity_type": "client-id", "match_type": default if name is None else exactly, "match": name}
        for name in names
    ]
    stage.ask("DescribeClientQuotas", {"components": components, "strict": False})


@table("DescribeUserScramCredentials", at=(0,), all_of_none=(None,), none_named=((),), one=(("alice",),),
       two=(("alice", "bob"),), one_twice=(("alice", "bob", "alice"),), one_without_a_name=(("",),))  # fmt: skip
def passwords(stage: Stage, names: tuple[str, ...] | None) -> None:
    """There are none."""
    users = None if names is None else [{"name": name} for name in names]
    stage.ask("DescribeUserScramCredentials", {"users": users})


METADATA = "__cluster_metadata"


def asked(topic: str, partition: int = 0) -> dict[str, Plain]:
    return {"topics": [{"topic_name": topic, "partitions": [{"partition_index": partition}]}]}


@scenario("DescribeQuorum")
def quorum(stage: Stage) -> None:
    """Who leads it, and that it has what the leader has."""
    said = stage.do("DescribeQuorum", asked(METADATA), version=stage.version("DescribeQuorum"))
    (topic,) = said["topics"]
    (part,) = topic["partitions"]
    voters = {row["replica_id"] for row in part["current_voters"]}
    stage.note("errors", [said["error_code"], said.get("error_message"), part["error_code"], part.get("error_message")])
    stage.note("names", [topic["topic_name"], part["partition_index"]])
    stage.note("leader votes", part["leader_id"] in voters)
    stage.note("there is something", part["leader_epoch"] > 0 and part["high_watermark"] > 0)
    ends = [row["log_end_offset"] for row in part["current_voters"]]
    stage.note("nobody is behind what counts", max(ends) >= part["high_watermark"])
    seen = {name: row[name] > 0 for row in part["current_voters"] for name in row if name.startswith("last_")}
    stage.note("seen", seen)
    stage.note("where voters are", {row["node_id"] for row in said.get("nodes", [])} in (voters, set()))


@table("DescribeQuorum", another_topic=("orders", 0), another_partition=(METADATA, 1))
def quorum_of(stage: Stage, topic: str, partition: int) -> None:
    stage.ask("DescribeQuorum", asked(topic, partition))


@scenario("DescribeQuorum")
def quorum_of_nothing(stage: Stage) -> None:
    stage.ask("DescribeQuorum", {"topics": []})


def folder(stage: Stage, broker: int = 1) -> str:
    """Where a broker has its logs."""
    (row,) = stage.do("DescribeLogDirs", {"topics": None}, to=broker)["results"]
    found: str = row["log_dir"]
    return found


def moved(path: str, *names: str, partition: int = 0) -> dict[str, Plain]:
    return {"dirs": [{"path": path, "topics": [{"name": name, "partitions": [partition]} for name in names]}]}


@scenario("AlterReplicaLogDirs")
def moved_to_where_it_is(stage: Stage) -> None:
    topic = stage.topic(replicas=(1,))
    stage.ask("AlterReplicaLogDirs", moved(folder(stage), topic.name))


@scenario("AlterReplicaLogDirs")
def moved_to_nowhere(stage: Stage) -> None:
    topic = stage.topic(replicas=(1,))
    stage.ask("AlterReplicaLogDirs", moved("/there/is/no/such/folder", topic.name, stage.name("missing")))


@scenario("AlterReplicaLogDirs")
def moved_by_a_name_that_is_not_whole(stage: Stage) -> None:
    topic = stage.topic(replicas=(1,))
    stage.ask("AlterReplicaLogDirs", moved("data", topic.name))


@scenario("AlterReplicaLogDirs")
def moved_that_is_elsewhere(stage: Stage) -> None:
    topic = stage.topic(replicas=(2, 3))
    stage.ask("AlterReplicaLogDirs", moved(folder(stage), topic.name))


@table("AlterReplicaLogDirs", topic_that_is_not_there=("missing", 0), partition_that_is_not_there=(None, 7))
def moved_what_is_not_there(stage: Stage, name: str | None, partition: int) -> None:
    topic = stage.topic(replicas=(1,)) if name is None else Topic(stage.name(name), "")
    stage.ask("AlterReplicaLogDirs", moved(folder(stage), topic.name, partition=partition))


@scenario("AlterReplicaLogDirs")
def moved_nothing(stage: Stage) -> None:
    stage.ask("AlterReplicaLogDirs", {"dirs": []})


def upserted(name: str, mechanism: int = 1, iterations: int = 4096, salted: bytes = bytes(32)) -> dict[str, Plain]:
    return {
        "name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt", "salted_password": salted,
    }  # fmt: skip


@table("AlterUserScramCredentials", at=(0,),
       nothing=((), ()), without_a_name=((), (("",),)), another_mechanism=((), (("alice", 3),)),
       too_few_iterations=((), (("alice", 1, 4095),)), too_many_iterations=((), (("alice", 1, 16_385),)),
       one_twice=((), (("alice",), ("alice", 2))), added_and_removed=((("alice", 1),), (("alice",),)),
       removed_that_is_not_there=((("alice", 1),), ()), removed_of_another_mechanism=((("alice", 0),), ()),
       removed_without_a_name=((("", 1),), ()), removed_twice=((("alice", 1), ("alice", 1)), ()),
       two_of_which_one_is_wrong=((("bob", 1),), (("", 1),)))  # fmt: skip
def password_that_cannot_be(stage: Stage, removed: tuple[tuple[str, int], ...], added: tuple[Plain, ...]) -> None:
    deletions = [{"name": name, "mechanism": mechanism} for name, mechanism in removed]
    body = {"deletions": deletions, "upsertions": [upserted(*one) for one in added]}
    stage.ask("AlterUserScramCredentials", body)


@scenario("AlterUserScramCredentials", at=(0,))
def password_added_changed_and_removed(stage: Stage) -> None:
    name = stage.name("alice")

    def known(expected: int) -> None:
        def there() -> bool:
            (row,) = stage.do("DescribeUserScramCredentials", {"users": [{"name": name}]})["results"]
            return len(row["credential_infos"]) == expected

        stage.until(there, f"{expected} passwords")
        stage.ask("DescribeUserScramCredentials", {"users": [{"name": name}]})

    for mechanism, iterations, count in ((1, 4096, 1), (2, 8192, 2)):
        body = {"deletions": [], "upsertions": [upserted(name, mechanism, iterations, bytes(32 * mechanism))]}
        stage.ask("AlterUserScramCredentials", body)
        known(count)
    for mechanism, count in ((1, 1), (2, 0)):
        body = {"deletions": [{"name": name, "mechanism": mechanism}], "upsertions": []}
        stage.ask("AlterUserScramCredentials", body)
        known(count)
