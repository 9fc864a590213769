"""For the site's reference: a method without a docstring has that of the class it comes from, as in `help()`.

What says that it is not for users is left out, and a named tuple has the constructor that Python gives it. An
extension of Griffe, which reads the sources for mkdocstrings; see mkdocs.yml. `Purgatory` needs it: the types of its
methods are in one class, and what they do is in its base, which is compiled.
"""

from __future__ import annotations

from typing import Any

from griffe import Alias, Attribute, Class, Extension, Function, Module, Object, Parameter, ParameterKind, Parameters


class InheritDocstrings(Extension):  # type: ignore[misc, unused-ignore]  # Griffe is not among the checks
    """Looks through every class of the package once it is read."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called by Griffe."""
        _visit(pkg)


def is_for_users(member: Object | Alias) -> bool:
    """Return whether a member of a class is described, and not as internal."""
    return member.docstring is not None and "Not for users." not in member.docstring.value


def is_record(one: Any) -> bool:
    """Return whether a class is one of fields: each has a name that says what it is, described further or not."""
    bases = {str(base) for base in one.bases}
    return not bases.isdisjoint({"NamedTuple", "TypedDict"}) or "dataclass" in one.labels


def _add_constructor(record: Class) -> None:
    """Give a named tuple its `__init__`, which Griffe does not derive as it does a dataclass's."""
    fields = [one for one in record.members.values() if isinstance(one, Attribute) and one.annotation is not None]
    kind = ParameterKind.positional_or_keyword
    parameters = [Parameter(one.name, annotation=one.annotation, kind=kind, default=one.value) for one in fields]
    record.set_member(
        "__init__", Function("__init__", parameters=Parameters(Parameter("self", kind=kind), *parameters))
    )


def _visit(where: Object) -> None:
    if isinstance(where, Class) and any(str(base) == "NamedTuple" for base in where.bases):
        _add_constructor(where)
    for member in list(where.members.values()):
        if member.is_alias:
            continue
        if isinstance(where, Class) and member.is_function and member.docstring is None:
            member.docstring = next(
                (base.members[member.name].docstring for base in where.mro() if member.name in base.members), None
            )
        if isinstance(where, Class) and member.docstring is not None and not is_for_users(member):
            where.del_member(member.name)
        elif isinstance(member, Module | Class):
            _visit(member)
