"""Operations whose watches do not go with the words of the call, or with one another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from abeyant.tables.columns import Mask
from abeyant.tables.roles import RoleWatches
from abeyant.tables.words import Role, Words

__all__ = ["contradictions"]


def contradictions(watches: Mapping[Role, RoleWatches], then: Mask, words: Words) -> list[tuple[Mask, str]]:
    """Return for each contradiction which operations have it, and its description. `then`: the condition's."""
    completing, extended = np.zeros(len(then), np.int64), np.zeros(len(then), np.bool_)
    np.add.at(completing, watches["complete"].operation, 1)
    extended[watches["extend"].operation] = True
    return [
        (
            (completing > 1) & (words.serves != "every"),
            f"has several watches that complete it, which does not go with serves={words.serves!r}: an event serves "
            "one watch; give each operation one",
        ),
        (
            then & (words.holds == "at_deadline"),
            "has condition 'then', which does not go with holds='at_deadline': steps are met one after the other",
        ),
        (
            extended & then & (words.within == "step"),
            "has steps and a watch that extends it, which does not go with within='step': each step restarts the "
            "countdown already",
        ),
    ]
