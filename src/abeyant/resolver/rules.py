"""The options of when an operation completes: `deadline`, `count`, `combine`, `holds`, `serves`, `within`, `calendar`.

`docs/design-resolve.md` defines them, and explains which exclude each other. `Resolver`, and `resolve` over tables,
Spark and streams, take the same options.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal, get_args, get_type_hints

from abeyant.kernels.timelines import Count
from abeyant.resolver.calendar import Calendar

__all__ = ["ROLES", "Combine", "Condition", "Count", "Deadline", "Holds", "Role", "Rules", "Serves", "Within", "either"]

Deadline = Literal["inclusive", "exclusive"]
Combine = Literal["max", "sum", "last"]
Holds = Literal["ever", "at_deadline"]
Serves = Literal["every", "oldest", "newest"]
Within = Literal["whole", "step"]
Role = Literal["complete", "cancel", "extend", "pause"]
Condition = Literal["all", "any", "then"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Rules:
    """The options of one call, with their defaults."""

    deadline: Deadline = "inclusive"
    count: Count = "always"
    combine: Combine = "max"
    holds: Holds = "ever"
    serves: Serves = "every"
    within: Within = "whole"
    calendar: Calendar | None = None
    details: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a value that an option does not take, or for options that exclude each other."""
        hints = get_type_hints(Rules)
        for field in fields(Rules):
            allowed = get_args(hints[field.name])
            value = getattr(self, field.name)
            if allowed and isinstance(allowed[0], str) and value not in allowed:
                own = field.name == "deadline" and not isinstance(value, str)
                hint = "; the time of an operation's deadline is given with the operation" if own else ""
                raise ValueError(f"{field.name} must be {either(allowed)}, not {value!r}{hint}")
        if not isinstance(self.details, bool):
            raise TypeError(f"details must be True or False, not {self.details!r}")
        if self.calendar is not None and not isinstance(self.calendar, Calendar):
            raise TypeError(f"calendar must be an abeyant.Calendar, not {type(self.calendar).__name__}")
        if self.serves != "every":
            for name, value in (("combine", "last"), ("holds", "at_deadline")):
                if getattr(self, name) == value:
                    raise ValueError(
                        f"serves={self.serves!r} and {name}={value!r} exclude each other: an event that serves one "
                        f"operation is used up when it comes; leave one of the two out"
                    )

    @property
    def plain(self) -> bool:
        """Return whether all options except `deadline` have their defaults."""
        return self == Rules(deadline=self.deadline)


def either(values: tuple[str, ...]) -> str:
    """Join values for a message: `'a', 'b' or 'c'`."""
    quoted = [repr(value) for value in values]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
