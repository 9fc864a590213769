"""Checks of what a run did, with Kafka's own allowances: `from abeyant.broker import checks as kafka_checks`."""

from abeyant.broker.checks.acknowledged import aborted_is_never_seen, acknowledged_is_readable
from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.consuming import commits_are_not_ahead, consumer_never_skips, everything_is_committed
from abeyant.broker.checks.effects import each_effect_at_least_once, each_effect_once
from abeyant.broker.checks.history import History

__all__ = [
    "Check",
    "History",
    "Verdict",
    "aborted_is_never_seen",
    "acknowledged_is_readable",
    "commits_are_not_ahead",
    "consumer_never_skips",
    "each_effect_at_least_once",
    "each_effect_once",
    "everything_is_committed",
]
