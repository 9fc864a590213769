"""Delegation tokens (KIP-48): created, renewed, expired and described; who may do so."""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import Plain
from ..rights import CREATE_TOKENS, DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER, Rule, granted
from ..scenario import Stage, scenario, table

CREATE, RENEW, EXPIRE, DESCRIBE_THEM = (
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken",
)  # fmt: skip
HOUR = 3_600_000
DAY = 24 * HOUR
Row = dict[str, Plain]


def creation(*renewers: str, lifetime: int = -1, owner: str | None = None, kind: str | None = "User") -> Row:
    """What a CreateDelegationToken says."""
    return {
        "renewers": [{"principal_type": one.partition(":")[0], "principal_name": one.partition(":")[2]}
                     for one in renewers],
        "max_lifetime": lifetime, "owner_principal_type": None if owner is None else kind,
        "owner_principal_name": owner,
    }  # fmt: skip


def owners(*names: str) -> Row:
    return {"owners": [{"principal_type": "User", "principal_name": name} for name in names]}


def created(stage: Stage, body: Row, user: str = "alice", version: int = 3) -> Row:
    """Create a token; write down what is said, and how long it lasts."""
    said = stage.ask(CREATE, body, over=stage.connect(user=user), version=version)
    if said["error_code"] == "NONE":
        issued = said["issue_timestamp"]
        stage.note("lasts", {"expiry": said["expiry_timestamp"] - issued, "max": said["max_timestamp"] - issued})
        _await_known(stage, said["token_id"], there=True)
    return said


def _await_known(stage: Stage, token: str, *, there: bool) -> None:
    def known() -> bool:
        return all(
            any(one["token_id"] == token for one in stage.do(DESCRIBE_THEM, {"owners": None}, to=broker)["tokens"])
            is there
            for broker in (1, 2, 3)
        )

    stage.until(known, "the token")


def forget(stage: Stage, tokens: Iterable[Row]) -> None:
    """Remove tokens, as their owners."""
    for said in tokens:
        owner = stage.connect(user=said["principal_name"])
        owner.ask(EXPIRE, 2, {"hmac": said["hmac"], "expiry_time_period": -1})
        _await_known(stage, said["token_id"], there=False)


@scenario(CREATE)
def made(stage: Stage) -> None:
    said = created(stage, creation("User:bob"), version=stage.version(CREATE))
    stage.ask(DESCRIBE_THEM, owners("alice"), over=stage.connect(user="alice"))
    forget(stage, [said])
    stage.ask(DESCRIBE_THEM, owners("alice"), over=stage.connect(user="alice"))


@table(
    zero=(0,), an_hour=(HOUR,), two_days=(2 * DAY,), a_year=(365 * DAY,),
)  # fmt: skip
def lifetime(stage: Stage, lifetime: int) -> None:
    forget(stage, [created(stage, creation(lifetime=lifetime))])


@table(
    CREATE,
    no_user=("Group:bob",), unknown_type=("bob",), one_of_two=("User:bob", "Host:one"),
)  # fmt: skip
def renewers_that_cannot_be(stage: Stage, *renewers: str) -> None:
    stage.ask(CREATE, creation(*renewers), over=stage.connect(user="alice"))


@scenario(CREATE, at=(3,))
def for_another(stage: Stage) -> None:
    created(stage, creation(owner="bob"))
    with granted(stage, Rule(CREATE_TOKENS, USER, "User:bob")):
        said = created(stage, creation(owner="bob"))
        created(stage, creation(owner="admin"))
    stage.ask(DESCRIBE_THEM, {"owners": None}, over=stage.connect(user="bob"))
    stage.ask(DESCRIBE_THEM, {"owners": None}, over=stage.connect(user="alice"))
    forget(stage, [said])


@scenario(CREATE, at=(3,))
def for_oneself_by_name(stage: Stage) -> None:
    forget(stage, [created(stage, creation(owner="alice"))])


def changed(stage: Stage, api: str, said: Row, period: int, user: str = "alice", **more: Plain) -> Row:
    """Renew or expire it; write down what is said, and how long it lasts from its making, in hours."""
    name = "renew_period" if api == RENEW else "expiry_time_period"
    body = {"hmac": said["hmac"], name: period, **more}
    answer = stage.ask(api, body, over=stage.connect(user=user))
    if answer["error_code"] == "NONE" and answer["expiry_timestamp"] > 0:
        stage.note("lasts, hours", round((answer["expiry_timestamp"] - said["issue_timestamp"]) / HOUR))
    return answer


@table(
    RENEW,
    default=(-1,), zero=(0,), an_hour=(HOUR,), a_month=(30 * DAY,),
)  # fmt: skip
def renewed(stage: Stage, period: int) -> None:
    said = created(stage, creation("User:bob"))
    changed(stage, RENEW, said, period)
    changed(stage, RENEW, said, period, "bob")
    changed(stage, RENEW, said, period, "admin")
    forget(stage, [said])


@scenario(RENEW)
def renewed_for_longer_than_it_may(stage: Stage) -> None:
    said = created(stage, creation(lifetime=2 * HOUR))
    changed(stage, RENEW, said, 5 * HOUR)
    forget(stage, [said])


@table(
    EXPIRE,
    an_hour=(HOUR,), a_month=(30 * DAY,),
)  # fmt: skip
def expires_later(stage: Stage, period: int) -> None:
    said = created(stage, creation("User:bob"))
    changed(stage, EXPIRE, said, period)
    changed(stage, EXPIRE, said, period, "bob")
    changed(stage, EXPIRE, said, period, "admin")
    forget(stage, [said])


@scenario(EXPIRE)
def expires_now(stage: Stage) -> None:
    said = created(stage, creation())
    changed(stage, EXPIRE, said, -1, "bob")
    changed(stage, EXPIRE, said, -1)
    _await_known(stage, said["token_id"], there=False)
    changed(stage, EXPIRE, said, -1)
    changed(stage, RENEW, said, -1)


@table(RENEW, unknown=(b"unknown",), none=(b"",))
def token_that_is_not_there(stage: Stage, key: bytes) -> None:
    changed(stage, RENEW, {"hmac": key}, -1)
    changed(stage, EXPIRE, {"hmac": key}, -1)


@scenario(DESCRIBE_THEM)
def described(stage: Stage) -> None:
    first = created(stage, creation("User:bob"))
    second = created(stage, creation(), "bob")
    for user in ("alice", "bob", "admin"):
        who = stage.connect(user=user)
        every: list[Row] = [{"owners": None}, {"owners": []}, owners("alice"), owners("bob"), owners("nobody", "bob")]
        for wanted in every:
            stage.ask(DESCRIBE_THEM, wanted, over=who)
    forget(stage, [first, second])


@table(
    by_token=(DESCRIBE, DELEGATION_TOKEN), by_owner=(DESCRIBE_TOKENS, USER), by_owners_description=(DESCRIBE, USER),
)  # fmt: skip
def described_by_a_right(stage: Stage, operation: int, kind: int) -> None:
    said = created(stage, creation(), "bob")
    name = said["token_id"] if kind == DELEGATION_TOKEN else "User:bob"
    with granted(stage, Rule(operation, kind, name)):
        stage.ask(DESCRIBE_THEM, {"owners": None}, over=stage.connect(user="alice"))
        stage.ask(DESCRIBE_THEM, owners("alice"), over=stage.connect(user="alice"))
    forget(stage, [said])
