"""SCRAM users, altered and described; ACLs where no authorizer is set up."""

from __future__ import annotations

from ..messages import Plain
from ..scenario import Stage, scenario, table

ALTER, DESCRIBE = "AlterUserScramCredentials", "DescribeUserScramCredentials"
SHA_256, SHA_512 = 1, 2
Row = dict[str, Plain]


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096, **more: Plain) -> Row:
    """A user's new credentials."""
    return {
        "name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt",
        "salted_password": b"salted password", **more,
    }  # fmt: skip


def altering(*upsertions: Row, deletions: Plain = ()) -> Row:
    return {"upsertions": list(upsertions), "deletions": list(deletions)}


def users(*names: str) -> Row:
    return {"users": [{"name": name} for name in names]}


def await_user(stage: Stage, name: str, count: int) -> None:
    """Until broker 1 knows so many credentials of a user."""

    def known() -> bool:
        (row,) = stage.do(DESCRIBE, users(name))["results"]
        return len(row["credential_infos"]) == count

    stage.until(known, "the user")


@scenario(ALTER)
def made_changed_and_deleted(stage: Stage) -> None:
    name = stage.name("user")
    stage.ask(ALTER, altering(upsertion(name)))
    await_user(stage, name, 1)
    stage.ask(ALTER, altering(upsertion(name, SHA_512, 8192)))
    await_user(stage, name, 2)
    stage.ask(DESCRIBE, users(name))
    stage.ask(ALTER, altering(deletions=[{"name": name, "mechanism": SHA_256}]))
    await_user(stage, name, 1)
    stage.ask(DESCRIBE, users(name))
    stage.ask(ALTER, altering(deletions=[{"name": name, "mechanism": SHA_512}]))
    await_user(stage, name, 0)
    stage.ask(DESCRIBE, users(name))


@table(
    ALTER,
    few_iterations=({"iterations": 4095},), many_iterations=({"iterations": 16385},), zero=({"iterations": 0},),
    unknown_mechanism=({"mechanism": 7},), no_mechanism=({"mechanism": 0},), no_salt=({"salt": b""},),
    no_password=({"salted_password": b""},),
)  # fmt: skip
def credentials_that_cannot_be(stage: Stage, more: Row) -> None:
    stage.ask(ALTER, altering(upsertion(stage.name("user"), **more)))


@scenario(ALTER)
def user_without_a_name(stage: Stage) -> None:
    stage.ask(ALTER, altering(upsertion("")))
    stage.ask(ALTER, altering(deletions=[{"name": "", "mechanism": SHA_256}]))


@table(
    ALTER,
    unknown_user=(SHA_256,), unknown_mechanism=(7,), no_mechanism=(0,),
)  # fmt: skip
def deletion_that_cannot_be(stage: Stage, mechanism: int) -> None:
    stage.ask(ALTER, altering(deletions=[{"name": stage.name("user"), "mechanism": mechanism}]))


@scenario(ALTER)
def mechanism_that_the_user_lacks(stage: Stage) -> None:
    name = stage.name("user")
    stage.do(ALTER, altering(upsertion(name)))
    await_user(stage, name, 1)
    stage.ask(ALTER, altering(deletions=[{"name": name, "mechanism": SHA_512}]))
    stage.do(ALTER, altering(deletions=[{"name": name, "mechanism": SHA_256}]))


@scenario(ALTER)
def user_named_twice(stage: Stage) -> None:
    name = stage.name("user")
    stage.ask(ALTER, altering(upsertion(name), upsertion(name)))
    stage.ask(ALTER, altering(upsertion(name), deletions=[{"name": name, "mechanism": SHA_256}]))
    stage.ask(ALTER, altering(deletions=[{"name": name, "mechanism": SHA_256}] * 2))


@scenario(ALTER)
def one_fails_and_another_does_not(stage: Stage) -> None:
    good, bad = stage.name("good"), stage.name("bad")
    stage.ask(ALTER, altering(upsertion(good), upsertion(bad, iterations=1)))
    await_user(stage, good, 1)
    stage.do(ALTER, altering(deletions=[{"name": good, "mechanism": SHA_256}]))


@scenario(ALTER)
def nothing_to_alter(stage: Stage) -> None:
    stage.ask(ALTER, altering())


@scenario(DESCRIBE)
def users_that_cannot_be_described(stage: Stage) -> None:
    name = stage.name("user")
    stage.ask(DESCRIBE, users(name))
    stage.ask(DESCRIBE, users(""))
    stage.ask(DESCRIBE, users(name, name))


_PATTERN = {"resource_type": 2, "resource_name": "topic", "resource_pattern_type": 3}
_ENTRY = {"principal": "User:one", "host": "*", "operation": 3, "permission_type": 3}
_FILTER = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
           "host_filter": None, "operation": 1, "permission_type": 1}  # fmt: skip


@scenario("CreateAcls")
def acl_without_an_authorizer(stage: Stage) -> None:
    stage.ask("CreateAcls", {"creations": [{**_PATTERN, **_ENTRY}]})


@scenario("DescribeAcls")
def acls_described_without_an_authorizer(stage: Stage) -> None:
    stage.ask("DescribeAcls", _FILTER)


@scenario("DeleteAcls")
def acls_deleted_without_an_authorizer(stage: Stage) -> None:
    stage.ask("DeleteAcls", {"filters": [_FILTER]})
