"""The errors of a log, each with Kafka's numeric error code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class LogError(Exception):
    """Base class of a log's errors. `code` is Kafka's error code; the message is Kafka's text where Kafka has one."""

    code: ClassVar[int]

    def __init_subclass__(cls, *, code: int = -1) -> None:
        """Set the error code of a subclass; the default, -1, is Kafka's UNKNOWN_SERVER_ERROR."""
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
    """A batch with invalid records. `record_errors` has each invalid record's index in the batch, and the reason."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        """Reject the whole batch. `record_errors` is empty if no single record is the reason."""
        super().__init__(message)
        self.record_errors = tuple(record_errors)


class InvalidTimestampError(InvalidRecordsError, code=32):
    """A timestamp that is too old or too new (`message.timestamp.*.max.ms`), or a client's type LogAppendTime."""


class InvalidRecordError(InvalidRecordsError, code=87):
    """A batch whose header and records disagree, or a record that its topic does not allow."""


class OutOfOrderSequenceError(LogError, code=45):
    """A producer's sequence number that leaves a gap."""


class InvalidProducerEpochError(LogError, code=47):
    """A batch whose producer epoch is not the latest: a newer producer uses the same id."""


class InvalidTransactionStateError(LogError, code=48):
    """A batch without the transactional attribute from a producer that has a transaction open."""


class CoordinatorFencedError(LogError, code=52):
    """A transaction marker from a coordinator that has been replaced."""


class StorageError(LogError, code=56):
    """A disk error: full, read-only, broken. A failed append leaves no part of the batch in the log."""


class UndecodableError(LogError, code=-1):
    """Compressed records that cannot be decompressed. Kafka responds with UNKNOWN_SERVER_ERROR."""
