"""The words of a call: those of `abeyant.Resolver`."""

from abeyant.resolver.words import ROLES, Combine, Deadline, Holds, Role, Serves, Within, Words

__all__ = ["ROLES", "Combine", "Deadline", "Holds", "Role", "Serves", "Within", "Words"]
