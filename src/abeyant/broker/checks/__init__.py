"""Checks of a simulated run, which allow all that Kafka allows: `from abeyant.broker import checks as kafka_checks`."""

from abeyant.broker.checks.acknowledged import aborted_is_never_seen, acknowledged_by_enough, acknowledged_is_readable
from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.commits import (
    commits_are_kept,
    commits_are_not_ahead,
    commits_follow_the_work,
    commits_never_go_back,
    everything_is_committed,
)
from abeyant.broker.checks.consuming import consumer_never_skips
from abeyant.broker.checks.effects import each_effect_at_least_once, each_effect_once
from abeyant.broker.checks.fencing import no_zombie_writes
from abeyant.broker.checks.groups import every_member_has_its_share, heartbeats_keep_members
from abeyant.broker.checks.history import (
    Committed,
    Ended,
    Event,
    Found,
    Group,
    Handed,
    History,
    Initialized,
    Item,
    Joined,
    Membership,
    Produced,
    Replica,
    Sent,
    Sought,
    Stored,
    Transaction,
)
from abeyant.broker.checks.ledger import Ledger
from abeyant.broker.checks.order import effects_in_order, order_per_key
from abeyant.broker.checks.state import replicas_agree, state_is_consistent, transactions_are_atomic

__all__ = [
    "Check",
    "Committed",
    "Ended",
    "Event",
    "Found",
    "Group",
    "Handed",
    "History",
    "Initialized",
    "Item",
    "Joined",
    "Ledger",
    "Membership",
    "Produced",
    "Replica",
    "Sent",
    "Sought",
    "Stored",
    "Transaction",
    "Verdict",
    "aborted_is_never_seen",
    "acknowledged_by_enough",
    "acknowledged_is_readable",
    "commits_are_kept",
    "commits_are_not_ahead",
    "commits_follow_the_work",
    "commits_never_go_back",
    "consumer_never_skips",
    "each_effect_at_least_once",
    "each_effect_once",
    "effects_in_order",
    "every_member_has_its_share",
    "everything_is_committed",
    "heartbeats_keep_members",
    "no_zombie_writes",
    "order_per_key",
    "replicas_agree",
    "state_is_consistent",
    "transactions_are_atomic",
]
