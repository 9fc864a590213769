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


class OffsetOutOfRangeError(LogError):
    """An offset below the log's start or above its end."""

    code = 1


class CorruptRecordError(LogError):
    """A batch whose CRC, length or magic is wrong."""

    code = 2


class RecordTooLargeError(LogError):
    """A batch larger than `max.message.bytes`."""

    code = 10


class BatchTooLargeError(LogError):
    """A batch larger than a segment (`segment.bytes`)."""

    code = 18


class RecordsRefusedError(LogError):
    """Records were refused one by one: `record_errors` has each one's index in its batch and the reason."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        """Refuse the whole batch for `message`; `record_errors` is empty where no single record is to blame."""
        super().__init__(message)
        self.record_errors = tuple(record_errors)


class InvalidTimestampError(RecordsRefusedError):
    """A timestamp outside what `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` allow."""

    code = 32


class InvalidRecordError(RecordsRefusedError):
    """A batch that contradicts itself, or a record that its topic cannot take."""

    code = 87


class OutOfOrderSequenceError(LogError):
    """A producer's sequence number that leaves a gap."""

    code = 45


class InvalidProducerEpochError(LogError):
    """A producer's epoch older than the last one seen: another producer has taken its id over."""

    code = 47


class InvalidTransactionStateError(LogError):
    """A batch outside a transaction from a producer that has one open."""

    code = 48


class CoordinatorFencedError(LogError):
    """A transaction's marker from a coordinator that another one has replaced."""

    code = 52


class StorageError(LogError):
    """The disk refused: full, read-only, broken. Nothing of the append stays."""

    code = 56


class UndecodableError(LogError):
    """Compressed records that do not decompress. Kafka answers these with UNKNOWN_SERVER_ERROR."""

    code = -1
