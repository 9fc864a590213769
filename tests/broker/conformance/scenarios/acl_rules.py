"""ACLs themselves: what they allow and deny, those that cannot be, and filters of them."""

from __future__ import annotations

from ..bodies import fetch, part
from ..rights import (
    ALL,
    ALLOW,
    ALTER,
    ANY,
    CLUSTER,
    CLUSTER_ACTION,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    THE_CLUSTER,
    TOPIC,
    WRITE,
    Body,
    Guest,
    Rule,
    granted,
)
from ..scenario import Stage, scenario, table


def outcome(guest: Guest, *rules: Rule) -> None:
    """Write down what a fetch sees while these rules hold."""
    with granted(guest.stage, *rules):
        guest.ask("Fetch", fetch(guest.topic, part()), 12)
        guest.ask("Metadata", {"topics": [{"name": guest.topic.name}]}, 12)


@table(
    literal=(LITERAL, "topic", {}), prefix=(PREFIXED, "top", {}), whole_as_prefix=(PREFIXED, "topic", {}),
    part_as_literal=(LITERAL, "top", {}), another_prefix=(PREFIXED, "tup", {}),
    everyone=(LITERAL, "topic", {"principal": "User:*"}), another_user=(LITERAL, "topic", {"principal": "User:bob"}),
    group_of_users=(LITERAL, "topic", {"principal": "Group:alice"}),
    this_host=(LITERAL, "topic", {"host": "127.0.0.1"}), another_host=(LITERAL, "topic", {"host": "10.0.0.1"}),
    all_operations=(LITERAL, "topic", {"operation": ALL}), describe=(LITERAL, "topic", {"operation": DESCRIBE}),
    alter=(LITERAL, "topic", {"operation": ALTER}),
)  # fmt: skip
def rule_that_allows(stage: Stage, pattern: int, name: str, more: Body) -> None:
    guest = Guest(stage)
    outcome(guest, Rule(READ, TOPIC, stage.name(name), pattern)._replace(**more))


@table(
    by_name=(LITERAL, "topic", {}), by_prefix=(PREFIXED, "top", {}),
    for_everyone=(LITERAL, "topic", {"principal": "User:*"}), for_another=(LITERAL, "topic", {"principal": "User:bob"}),
    at_this_host=(LITERAL, "topic", {"host": "127.0.0.1"}), at_another_host=(LITERAL, "topic", {"host": "10.0.0.1"}),
    all_operations=(LITERAL, "topic", {"operation": ALL}), describe=(LITERAL, "topic", {"operation": DESCRIBE}),
)  # fmt: skip
def rule_that_denies(stage: Stage, pattern: int, name: str, more: Body) -> None:
    guest = Guest(stage)
    denied = Rule(READ, TOPIC, stage.name(name), pattern, DENY)._replace(**more)
    outcome(guest, Rule(READ, TOPIC, guest.topic.name), denied)


@table(
    "CreateAcls",
    no_name=({"resource_name": ""},), any_type=({"resource_type": 1},), unknown_type=({"resource_type": 0},),
    any_pattern=({"resource_pattern_type": ANY},), match=({"resource_pattern_type": MATCH},),
    any_operation=({"operation": 1},), unknown_operation=({"operation": 0},), any_permission=({"permission_type": 1},),
    no_user=({"principal": ""},), user_without_type=({"principal": "alice"},),
    cluster_by_another_name=({"resource_type": CLUSTER, "resource_name": "mine"},),
    operation_of_other_types=({"operation": CLUSTER_ACTION},), no_host=({"host": ""},),
)  # fmt: skip
def rule_that_cannot_be(stage: Stage, more: Body) -> None:
    rule = Rule(READ, TOPIC, stage.name("topic"))
    said = stage.ask("CreateAcls", {"creations": [{**rule.creation, **more}]})
    if any(row["error_code"] == "NONE" for row in said.get("results", ())):
        stage.do("DeleteAcls", {"filters": [{**rule.filter, "principal_filter": None, "host_filter": None,
                                             "operation": 1, "permission_type": 1}]})  # fmt: skip


@table(
    "DescribeAcls",
    all=({},), literal=({"pattern_type_filter": LITERAL},), prefixed=({"pattern_type_filter": PREFIXED},),
    match=({"pattern_type_filter": MATCH},), match_without_a_name=({"pattern_type_filter": MATCH, "name": None},),
    prefix=({"pattern_type_filter": PREFIXED, "name": "top"},), of_bob=({"principal_filter": "User:bob"},),
    of_nobody=({"principal_filter": "User:nobody"},), reading=({"operation": READ},),
    all_operations=({"operation": ALL},),
    denied=({"permission_type": DENY},), at_a_host=({"host_filter": "10.0.0.1"},),
    unknown_type=({"resource_type_filter": 0},), unknown_pattern=({"pattern_type_filter": 0},),
    unknown_operation=({"operation": 0},), unknown_permission=({"permission_type": 0},),
)  # fmt: skip
def rules_found(stage: Stage, more: Body) -> None:
    rules = (
        Rule(READ, TOPIC, stage.name("topic")),
        Rule(ALL, TOPIC, stage.name("top"), PREFIXED),
        Rule(WRITE, TOPIC, stage.name("topic"), PREFIXED, DENY, "User:bob", "10.0.0.1"),
        Rule(READ, GROUP, stage.name("topic")),
    )
    name = more.get("name", "topic")
    wanted = {
        "resource_type_filter": 1, "resource_name_filter": None if name is None else stage.name(name),
        "pattern_type_filter": ANY, "principal_filter": None, "host_filter": None, "operation": 1,
        "permission_type": 1, **{key: value for key, value in more.items() if key != "name"},
    }  # fmt: skip
    if name is None:  # else everybody's
        wanted["principal_filter"] = "User:nobody"
    with granted(stage, *rules):
        stage.ask("DescribeAcls", wanted)


@scenario("DeleteAcls")
def rules_deleted(stage: Stage) -> None:
    rules = [
        Rule(READ, TOPIC, stage.name("topic")),
        Rule(WRITE, TOPIC, stage.name("topic"), permission_type=DENY),
        Rule(READ, TOPIC, stage.name("top"), PREFIXED),
    ]
    with granted(stage, *rules):
        every = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
        missing = {**rules[0].filter, "resource_name_filter": stage.name("missing")}
        bad = {**rules[0].filter, "operation": 0}
        stage.ask("DeleteAcls", {"filters": [rules[2].filter, missing, {**rules[0].filter, **every}]})
        stage.ask("DeleteAcls", {"filters": [rules[2].filter]})
        stage.ask("DeleteAcls", {"filters": [bad]})


@scenario("CreateAcls")
def rules_created_of_which_one_cannot_be(stage: Stage) -> None:
    good, bad = Rule(READ, TOPIC, stage.name("topic")), Rule(READ, TOPIC, "")
    stage.ask("CreateAcls", {"creations": [good.creation, bad.creation, good.creation]})
    stage.do("DeleteAcls", {"filters": [good.filter]})


@scenario()
def administrator_needs_no_right(stage: Stage) -> None:
    topic = stage.topic("topic")
    with granted(stage, Rule(READ, TOPIC, topic.name, permission_type=DENY, principal="User:admin")):
        stage.ask("Fetch", fetch(topic, part()), version=12)
    stage.ask("DescribeAcls", Rule(ALL, CLUSTER, THE_CLUSTER, permission_type=ALLOW).filter)
