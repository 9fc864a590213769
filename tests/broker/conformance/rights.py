"""Users, and what they may do: rules that hold while a block runs, and what a user sees as rights come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import NamedTuple

from .client import Connection
from .messages import Plain
from .scenario import Stage, Topic, versions

# Kafka's numbers
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(2, 8)
(
    ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS,
    IDEMPOTENT_WRITE, CREATE_TOKENS, DESCRIBE_TOKENS,
) = range(2, 15)  # fmt: skip
ANY, MATCH, LITERAL, PREFIXED = range(1, 5)
DENY, ALLOW = 2, 3
THE_CLUSTER = "kafka-cluster"

Right = tuple[int, int, str]
"""An operation, a type, and which resource: "topic", "other", "absent", "group", "till" or "cluster"."""
Body = dict[str, Plain]


class Rule(NamedTuple):
    """One ACL."""

    operation: int
    resource_type: int
    resource_name: str
    pattern: int = LITERAL
    permission_type: int = ALLOW
    principal: str = "User:alice"
    host: str = "*"

    @property
    def creation(self) -> Body:
        return {
            "resource_type": self.resource_type, "resource_name": self.resource_name,
            "resource_pattern_type": self.pattern, "principal": self.principal, "host": self.host,
            "operation": self.operation, "permission_type": self.permission_type,
        }  # fmt: skip

    @property
    def filter(self) -> Body:
        return {
            "resource_type_filter": self.resource_type, "resource_name_filter": self.resource_name,
            "pattern_type_filter": self.pattern, "principal_filter": self.principal, "host_filter": self.host,
            "operation": self.operation, "permission_type": self.permission_type,
        }  # fmt: skip


@contextmanager
def granted(stage: Stage, *rules: Rule, brokers: tuple[int, ...] = (1, 2, 3)) -> Iterator[None]:
    """Let rules hold at all brokers until the block ends."""
    said = stage.do("CreateAcls", {"creations": [rule.creation for rule in rules]})
    if any(row["error_code"] != "NONE" for row in said["results"]):
        raise RuntimeError(f"no rule: {said}")
    _await(stage, rules, brokers, there=True)
    try:
        yield
    finally:
        stage.do("DeleteAcls", {"filters": [rule.filter for rule in rules]})
        _await(stage, rules, brokers, there=False)


def _await(stage: Stage, rules: tuple[Rule, ...], brokers: tuple[int, ...], *, there: bool) -> None:
    def known() -> bool:
        return all(
            bool(stage.do("DescribeAcls", rule.filter, to=broker)["resources"]) is there
            for broker in brokers
            for rule in rules
        )

    stage.until(known, "the rules")


class Guest:
    """Alice, who has no right, and what is there."""

    def __init__(self, stage: Stage, broker: int = 1) -> None:
        self.stage = stage
        self.broker = broker
        self.absent = Topic(stage.name("absent"), "11111111-2222-3333-4444-555555555555")
        self.group, self.till = stage.name("group"), stage.name("till")
        self._connection: Connection | None = None

    @cached_property
    def topic(self) -> Topic:
        return self.stage.topic("topic")

    @cached_property
    def other(self) -> Topic:
        return self.stage.topic("other")

    @property
    def topics(self) -> tuple[Topic, Topic]:
        return self.topic, self.other

    def rule(self, right: Right) -> Rule:
        """The rule of a right."""
        operation, kind, which = right
        found = THE_CLUSTER if which == "cluster" else getattr(self, which, which)
        return Rule(operation, kind, found.name if isinstance(found, Topic) else found)

    def ask(self, api: str, body: Mapping[str, Plain], version: int) -> Body:
        """Ask as alice, and write down what is said."""
        if self._connection is None:
            self._connection = self.stage.connect(self.broker, user="alice")
        said = self.stage.ask(api, body, version=version, over=self._connection)
        if "connection" in said:
            self._connection = None
        return said

    def tries(self, api: str, body: Callable[[Guest], Body], *rights: Right, at: tuple[int, ...] = ()) -> None:
        """Ask in the lowest and the highest version without a right, and in the highest as each right comes."""
        known = at or (versions(api)[0], versions(api)[-1])
        with ExitStack() as stack:
            for version in dict.fromkeys(known):
                self.ask(api, body(self), version)
            for right in rights:
                stack.enter_context(granted(self.stage, self.rule(right)))
                self.ask(api, body(self), known[-1])


Make = Callable[[Guest], Body]

TOPIC_READ: Right = (READ, TOPIC, "topic")
OTHER_READ: Right = (READ, TOPIC, "other")
SEEN: Right = (DESCRIBE, TOPIC, "topic")
OTHER_SEEN: Right = (DESCRIBE, TOPIC, "other")
GROUP_READ: Right = (READ, GROUP, "group")
GROUP_SEEN: Right = (DESCRIBE, GROUP, "group")
TILL: Right = (WRITE, TRANSACTIONAL_ID, "till")


def both(body: Callable[[Topic], Body], guest: Guest, field: str = "topics") -> Body:
    """A request of two topics, made of two of one."""
    first, second = body(guest.topic), body(guest.other)
    return {**first, field: [*first[field], *second[field]]}
