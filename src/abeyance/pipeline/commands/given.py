"""The command line, as a result's marker and its page repeat it: without what is secret."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Final

__all__ = ["given"]

# The words by which Spark too knows a secret (`spark.redaction.regex`), and one more, for settings of JAAS.
_SECRET: Final = re.compile(r"secret|password|passphrase|token|access[._-]?key|jaas", re.IGNORECASE)
_USER: Final = re.compile(r"(?P<scheme>\w+://)[^/@\s]+:[^/@\s]+@")
_HIDDEN: Final = "(hidden)"


def given(arguments: Sequence[str] | None = None) -> str:
    """The command as one would type it again; `arguments` are those of this process unless given.

    Hidden are the value of a setting whose name or value speaks of a secret, and a user with a password in a URI.
    """
    words = sys.argv[1:] if arguments is None else arguments
    before = ["", *words]
    return shlex.join(["abeyance", *map(_shown, before, words)])


def _shown(before: str, word: str) -> str:
    if (before == "--conf" or word.startswith("--conf=")) and _SECRET.search(word):
        option, equals, setting = word.rpartition("--conf=")
        return f"{option}{equals}{setting.partition('=')[0]}={_HIDDEN}"
    return _USER.sub(rf"\g<scheme>{_HIDDEN}@", word)
