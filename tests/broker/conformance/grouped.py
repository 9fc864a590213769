"""A group of a scenario: requests go to whoever coordinates it, which is not the same broker in every run."""

from __future__ import annotations

from collections.abc import Mapping

from .messages import Plain
from .scenario import Pending, Stage

_OF_NO_GROUP = (  # they name several
    "ConsumerGroupDescribe", "DeleteGroups", "DescribeGroups", "DescribeShareGroupOffsets", "ListGroups",
    "ShareGroupDescribe", "StreamsGroupDescribe",
)  # fmt: skip
PROTOCOLS = (("range", b"of range"), ("sticky", b"of sticky"))


class Group:
    """One group, with a name that no other scenario has."""

    def __init__(self, stage: Stage, name: str = "group") -> None:
        self.stage = stage
        self.id = stage.name(name)
        self.node = 0
        stage.until(self._found, "a coordinator")

    def _found(self) -> bool:
        (row,) = self.stage.do("FindCoordinator", {"coordinator_keys": [self.id]})["coordinators"]
        self.node = row["node_id"]
        nobody = {"member_id": "nobody", "generation_id": 1}
        return bool(row["error_code"] == "NONE" and self.do("Heartbeat", nobody)["error_code"] == "UNKNOWN_MEMBER_ID")

    def body(self, body: Mapping[str, Plain]) -> dict[str, Plain]:
        """With the group's id."""
        return {"group_id": self.id, **body}

    def do(self, api: str, body: Mapping[str, Plain], version: int | None = None) -> dict[str, Plain]:
        """Ask at the highest version; nothing is written down."""
        whole = body if api in _OF_NO_GROUP else self.body(body)
        return self.stage.do(api, whole, to=self.node, version=version)

    def ask(self, api: str, body: Mapping[str, Plain], version: int | None = None) -> dict[str, Plain]:
        """Ask and write down what is said, without who said it."""
        version = self.stage.version(api) if version is None else version
        said = self.do(api, body, version)
        self.stage.note(f"{api} v{version}", said)
        return said

    def joining(
        self, member: str = "", instance: str | None = None, *, protocols: tuple[tuple[str, bytes], ...] = PROTOCOLS,
        session: int = 30_000, rebalance: int = 30_000, kind: str = "kind",
    ) -> dict[str, Plain]:  # fmt: skip
        """What a JoinGroup says. Times in ms."""
        return {
            "session_timeout": session, "rebalance_timeout": rebalance, "member_id": member,
            "group_instance_id": instance, "protocol_type": kind,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols],
        }  # fmt: skip

    def join(self, member: str = "", instance: str | None = None, **more: Plain) -> dict[str, Plain]:
        """Join at once, as the only one that has to; nothing is written down but the member's name."""
        said = self.do("JoinGroup", self.joining(member, instance, **more))
        if said["error_code"] == "MEMBER_ID_REQUIRED":
            said = self.do("JoinGroup", self.joining(said["member_id"], instance, **more))
        self.stage.note("joined", {"member_id": said["member_id"], "error_code": said["error_code"]})
        return said

    def join_later(
        self, member: str = "", instance: str | None = None, *, version: int | None = None, **more: Plain
    ) -> Pending:
        """Join, and go on while that waits."""
        if not member and instance is None and (version is None or version >= 4):
            member = self.do("JoinGroup", self.joining("", None, **more))["member_id"]
        return self.stage.later(
            "JoinGroup", self.body(self.joining(member, instance, **more)), to=self.node, version=version
        )

    def syncing(self, joined: Mapping[str, Plain], *assignments: bytes) -> dict[str, Plain]:
        """What a SyncGroup says; the leader gives what each of the members has, itself first."""
        members = sorted(joined["members"], key=lambda member: bool(member["member_id"] != joined["member_id"]))
        return {
            "generation_id": joined["generation_id"], "member_id": joined["member_id"],
            "protocol_type": "kind", "protocol_name": joined["protocol_name"],
            "assignments": [
                {"member_id": member["member_id"], "assignment": assignment}
                for member, assignment in zip(members, assignments, strict=False)
            ],
        }  # fmt: skip

    def sync(self, joined: Mapping[str, Plain], *assignments: bytes) -> None:
        """Sync; nothing is written down."""
        self.do("SyncGroup", self.syncing(joined, *assignments))

    def stable(self, instance: str | None = None, **more: Plain) -> dict[str, Plain]:
        """Be stable, with one member."""
        joined = self.join(instance=instance, **more)
        self.sync(joined, b"assignment")
        return joined

    def alive(self, joined: Mapping[str, Plain]) -> dict[str, Plain]:
        """What a Heartbeat says."""
        return {"generation_id": joined["generation_id"], "member_id": joined["member_id"]}

    def await_rebalance(self, joined: Mapping[str, Plain]) -> None:
        """Until a member is told to join again."""
        self.stage.until(
            lambda: self.do("Heartbeat", self.alive(joined))["error_code"] == "REBALANCE_IN_PROGRESS", "a rebalance"
        )

    def await_known(self) -> None:
        """Until the group is written down: what is told of groups is told then."""
        stage = self.stage
        stage.until(
            lambda: self.do("DescribeGroups", {"groups": [self.id]})["groups"][0]["error_code"] == "NONE", "the group"
        )
