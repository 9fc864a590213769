"""What a log refuses, each with Kafka's numeric error code, so that the rooms above need no table of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "BatchTooLargeError",
    "CoordinatorFencedError",
    "CorruptRecordError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidTimestampError",
    "InvalidTransactionStateError",
    "LogError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "RecordTooLargeError",
    "StorageError",
    "UndecodableError",
]


class LogError(Exception):
    """A log refused something. `code` is Kafka's error code, the message what Kafka would tell the client."""

    code: ClassVar[int]

    def __init_subclass__(cls, *, code: int = -1) -> None:
        """Give a refusal its code; -1 is UNKNOWN_SERVER_ERROR."""
        super().__init_subclass__()
        cls.code = code


class OffsetOutOfRangeError(LogError, code=1):
    """An offset below the log's start or above its end."""


class CorruptRecordError(LogError, code=2):
    """A batch whose CRC, length or magic is wrong."""


class RecordTooLargeError(LogError, code=10):
    """A batch larger than `max.message.bytes`."""


class BatchTooLargeError(LogError, code=18):
    """A batch larger than a segment (`segment.bytes`)."""


class RecordsRefusedError(LogError):
    """Records were refused one by one: `record_errors` has each one's index in its batch and the reason."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        """Refuse the whole batch for `message`; `record_errors` is empty where no single record is to blame."""
        super().__init__(message)
        self.record_errors = tuple(record_errors)


class InvalidTimestampError(RecordsRefusedError, code=32):
    """A timestamp outside what `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` allow."""


class InvalidRecordError(RecordsRefusedError, code=87):
    """A batch that contradicts itself, or a record that its topic cannot take."""


class OutOfOrderSequenceError(LogError, code=45):
    """A producer's sequence number that leaves a gap."""


class InvalidProducerEpochError(LogError, code=47):
    """A producer's epoch older than the last one seen: another producer has taken its id over."""


class InvalidTransactionStateError(LogError, code=48):
    """A batch outside a transaction from a producer that has one open."""


class CoordinatorFencedError(LogError, code=52):
    """A transaction's marker from a coordinator that another one has replaced."""


class StorageError(LogError, code=56):
    """The disk refused: full, read-only, broken. Nothing of the append stays."""


class UndecodableError(LogError, code=-1):
    """Compressed records that do not decompress. Kafka answers these with UNKNOWN_SERVER_ERROR."""
