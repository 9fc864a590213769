"""Operations whose watches contradict the options of the call, or each other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from abeyant.tables.columns import Mask
from abeyant.tables.roles import RoleWatches
from abeyant.tables.words import Role, Words

__all__ = ["contradictions"]


def contradictions(watches: Mapping[Role, RoleWatches], then: Mask, words: Words) -> list[tuple[Mask, str]]:
    """Return a mask of operations and a message for each kind of contradiction. `then`: which have that condition."""
    completing, extended = np.zeros(len(then), np.int64), np.zeros(len(then), np.bool_)
    np.add.at(completing, watches["complete"].operation, 1)
    extended[watches["extend"].operation] = True
    return [
        (
            (completing > 1) & (words.serves != "every"),
            f"has several watches with role 'complete', which serves={words.serves!r} excludes: an event serves one "
            "watch; give each operation one",
        ),
        (
            then & (words.holds == "at_deadline"),
            "has condition 'then', which holds='at_deadline' excludes: steps are met one after the other; use "
            "holds='ever' or condition 'all'",
        ),
        (
            extended & then & (words.within == "step"),
            "has steps and a watch with role 'extend', which within='step' excludes: each step restarts the countdown "
            "already; use within='whole' or leave the watch out",
        ),
    ]
