"""The errors of a log, each with Kafka's numeric error code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class LogError(Exception):
    """An operation that a log rejects. `code` is Kafka's error code, and the message is Kafka's."""

    code: ClassVar[int]

    def __init_subclass__(cls, *, code: int = -1) -> None:
        """Set the code of a class of errors; -1 is UNKNOWN_SERVER_ERROR."""
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


class InvalidRecordsError(LogError):
    """A batch with invalid records: `record_errors` has each one's index in the batch and the reason."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        """Reject the whole batch; `record_errors` is empty where no single record is the reason."""
        super().__init__(message)
        self.record_errors = tuple(record_errors)


class InvalidTimestampError(InvalidRecordsError, code=32):
    """A timestamp outside what `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` allow."""


class InvalidRecordError(InvalidRecordsError, code=87):
    """A batch whose header and records disagree, or a record that its topic does not allow."""


class OutOfOrderSequenceError(LogError, code=45):
    """A producer's sequence number that leaves a gap."""


class InvalidProducerEpochError(LogError, code=47):
    """The producer's epoch is not the latest: a newer producer uses its id."""


class InvalidTransactionStateError(LogError, code=48):
    """A batch outside a transaction from a producer that has one open."""


class CoordinatorFencedError(LogError, code=52):
    """A transaction marker from a coordinator that has been replaced."""


class StorageError(LogError, code=56):
    """A disk error: full, read-only, broken. No part of the append remains."""


class UndecodableError(LogError, code=-1):
    """Compressed records that do not decompress. Kafka answers these with UNKNOWN_SERVER_ERROR."""
