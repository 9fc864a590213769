"""The command line without secrets, for a result's marker and page."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Final

__all__ = ["redacted_command_line"]

# Spark's words for secrets (`spark.redaction.regex`), and more: for JAAS, and for keys of Azure
# (`fs.azure.account.key.*`, `fs.azure.sas.*`), Google (`private.key`) and S3's encryption.
_SECRET: Final = re.compile(
    r"secret|password|passphrase|token|(access|account|private|encryption)[._-]?key|[._]sas[._]|credential|jaas",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"(?P<uri>^(?:--\w+=)?sc://.*?;token=)[^;]*")
_USER: Final = re.compile(r"(?P<scheme>\w+://)[^/@\s]+:[^/@\s]+@")
_HIDDEN: Final = "(hidden)"


def redacted_command_line(arguments: Sequence[str] | None = None) -> str:
    """Return the command line, quoted as for a shell; `arguments` default to the arguments of this process.

    Redacts settings whose name or value looks like a secret, user and password in a URI, and the token of a Spark
    Connect server.
    """
    words = sys.argv[1:] if arguments is None else arguments
    before = ["", *words]
    return shlex.join(["abeyant", *map(_shown, before, words)])


def _shown(before: str, word: str) -> str:
    if (before == "--conf" or word.startswith("--conf=")) and _SECRET.search(word):
        option, equals, setting = word.rpartition("--conf=")
        return f"{option}{equals}{setting.partition('=')[0]}={_HIDDEN}"
    return _TOKEN.sub(rf"\g<uri>{_HIDDEN}", _USER.sub(rf"\g<scheme>{_HIDDEN}@", word))
