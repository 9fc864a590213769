"""Find operations whose columns or watches contradict the options of the call, or each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from abeyant.errors import SchemaError
from abeyant.tables.columns import Mask
from abeyant.tables.roles import RoleWatches
from abeyant.tables.rules import FIXED_INSTANT, Role, Rules
from abeyant.tables.schemas import OPERATIONS, expected_columns

__all__ = ["check_deadline", "contradictions"]


def check_deadline(columns: Collection[str], rules: Rules) -> None:
    """Raise `SchemaError` if operations with these columns have a `deadline` together with a calendar or `pause_key`.

    Watches in lists may pause, too, but only their rows show that: `WatchedOperations` checks them.
    """
    read = expected_columns(OPERATIONS, columns)
    if "deadline" in read and (rules.calendar is not None or "pause_key" in read):
        raise SchemaError(f"operations: {FIXED_INSTANT}")


def contradictions(watches: Mapping[Role, RoleWatches], then: Mask, rules: Rules) -> list[tuple[Mask, str]]:
    """Return, for each possible contradiction, a mask of the operations that have it, and a message.

    `then` is a mask of the operations with condition 'then'.
    """
    completing, extended = np.zeros(len(then), np.int64), np.zeros(len(then), np.bool_)
    np.add.at(completing, watches["complete"].operation, 1)
    extended[watches["extend"].operation] = True
    return [
        (
            (completing > 1) & (rules.serves != "every"),
            f"has several watches with role 'complete', which serves={rules.serves!r} excludes: an event serves one "
            "watch; give each operation one such watch",
        ),
        (
            then & (rules.holds == "at_deadline"),
            "has condition 'then', which holds='at_deadline' excludes: steps are met one after the other; use "
            "holds='ever' or condition 'all'",
        ),
        (
            extended & then & (rules.within == "step"),
            "has condition 'then' and a watch with role 'extend', which within='step' excludes: each step restarts "
            "the countdown already; use within='whole' or leave the watch out",
        ),
    ]
