"""Validate a client's batch and set its timestamps, before the log assigns offsets. Kafka: `LogValidator`.

First the batch's size, CRC and header are checked, then every record, for which a compressed batch is decompressed. A
batch is compressed again only for a topic whose `compression.type` is another codec, or to correct offset deltas.
"""

from __future__ import annotations

from abeyant.broker.log import compression
from abeyant.broker.log.batch import APPEND_TIME, COMPRESSION, CONTROL, NO_PRODUCER, NO_TIMESTAMP, Batch, split
from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
)
from abeyant.broker.log.records import MalformedRecordsError, Record, decode, survey


def parse_batch(records: bytes, config: LogConfig, *, from_client: bool) -> Batch:
    """Return the only batch in `records`. Check the batch's size and CRC, and for a client's batch also the header.

    Raises CorruptRecordError, InvalidRecordError, RecordTooLargeError.
    """
    batches = split(records)
    if not batches:
        raise InvalidRecordError("Record batch has no batches at all")
    batch = batches[0]
    if from_client and batch.base_offset:
        raise InvalidRecordError(f"The baseOffset of the record batch should be 0, but it is {batch.base_offset}")
    if batch.size > config.max_message_bytes:
        raise RecordTooLargeError(
            f"The record batch size is {batch.size} bytes which exceeds the maximum configured value of"
            f" {config.max_message_bytes}."
        )
    if not batch.crc_is_valid():
        raise CorruptRecordError(f"Record is corrupt (stored crc = {batch.crc})")
    if len(batches) > 1:
        raise InvalidRecordError("Compressed outer record has more than one batch")
    if from_client:
        _check_header(batch)
    return batch


def _check_header(batch: Batch) -> None:
    last = batch.last_offset
    if last < batch.base_offset:
        raise InvalidRecordError(f"Batch has an invalid offset range: [{batch.base_offset}, {last}]")
    if batch.record_count <= 0:
        raise InvalidRecordError(f"Invalid reported count for record batch: {batch.record_count}")
    if last - batch.base_offset + 1 != batch.record_count:
        raise InvalidRecordError(
            f"Inconsistent batch offset range [{batch.base_offset}, {last}] and count of records {batch.record_count}"
        )
    if batch.attributes & CONTROL:
        raise InvalidRecordError("Clients are not allowed to write control records")
    if batch.producer_id != NO_PRODUCER and batch.base_sequence < 0:
        raise InvalidRecordError(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
        )


def validate(batch: Batch, config: LogConfig, now_ms: int) -> Batch:
    """Check every record. Return the batch with its greatest timestamp set, compressed with the topic's codec.

    Raises InvalidRecordError, InvalidTimestampError, UndecodableError, RecordTooLargeError (after compressing again).
    """
    attributes = batch.attributes
    if attributes & CONTROL:
        return batch
    codec = attributes & COMPRESSION
    payload = batch.payload()
    try:
        summary = survey(payload, batch.record_count)
    except MalformedRecordsError as error:
        raise InvalidRecordError(str(error)) from None
    append_time = config.message_timestamp_type == "LogAppendTime"
    times_from_header = attributes & APPEND_TIME
    least = batch.max_timestamp if times_from_header else batch.base_timestamp + summary.least_delta
    greatest = batch.max_timestamp if times_from_header else batch.base_timestamp + summary.greatest_delta
    if (
        (summary.without_key and config.compact)
        or (codec and not summary.plain)
        or (not append_time and (times_from_header or _has_invalid_time(least, greatest, config, now_ms)))
    ):
        _check_each(batch, payload, config, now_ms)
    target = compression.NAMES.get(config.compression_type, codec)
    if target != codec or (target and not summary.in_order):
        records = decode(payload, batch.record_count, batch.base_offset, batch.base_timestamp)
        records = [record._replace(offset=batch.base_offset + index) for index, record in enumerate(records)]
        batch = batch.with_records(records, target)
        if batch.size > config.max_message_bytes:
            raise RecordTooLargeError(
                f"Message batch size is {batch.size} bytes which exceeds the maximum configured size of"
                f" {config.max_message_bytes}."
            )
    return batch.with_timestamp(now_ms if append_time else max(greatest, NO_TIMESTAMP), append_time=append_time)


def records_of(batch: Batch) -> list[Record]:
    """Return a batch's records, decompressed, with their offsets and timestamps.

    Raises UndecodableError, InvalidRecordError.
    """
    try:
        records = decode(batch.payload(), batch.record_count, batch.base_offset, batch.base_timestamp)
    except MalformedRecordsError as error:
        raise InvalidRecordError(str(error)) from None
    if batch.timestamp_is_append_time:
        return [record._replace(timestamp=batch.max_timestamp) for record in records]
    return records


def _has_invalid_time(least: int, greatest: int, config: LogConfig, now_ms: int) -> bool:
    return (
        now_ms - least > config.message_timestamp_before_max_ms
        or greatest - now_ms > config.message_timestamp_after_max_ms
    )


def _check_each(batch: Batch, payload: bytes, config: LogConfig, now_ms: int) -> None:
    """Check the key and the timestamp of each record. Slow: called only if some record may be invalid.

    Raises InvalidTimestampError or InvalidRecordError, with the errors of all records.
    """
    append_time = config.message_timestamp_type == "LogAppendTime"
    errors: list[tuple[int, str]] = []
    invalid_time = False
    least = now_ms - config.message_timestamp_before_max_ms
    greatest = now_ms + config.message_timestamp_after_max_ms
    for index, record in enumerate(decode(payload, batch.record_count, batch.base_offset, batch.base_timestamp)):
        timestamp = batch.max_timestamp if batch.timestamp_is_append_time else record.timestamp
        if config.compact and record.key is None:
            errors.append((index, "Compacted topic cannot accept message without key"))
        elif append_time:
            continue
        elif timestamp != NO_TIMESTAMP and not least <= timestamp <= greatest:
            invalid_time = True
            errors.append(
                (
                    index,
                    f"Timestamp {timestamp} of message with offset {record.offset} is out of range. The timestamp"
                    f" should be within [{least}, {greatest}]",
                )
            )
        elif batch.timestamp_is_append_time:
            invalid_time = True
            errors.append((index, "Invalid timestamp type in message. Producer should not set it to LogAppendTime."))
    if invalid_time:
        raise InvalidTimestampError("One or more records have been rejected due to invalid timestamp", errors)
    if errors:
        details = ", ".join(f"record {index}: {reason}" for index, reason in errors[:3])
        raise InvalidRecordError(
            f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing"
            f" the first three errors at most: {details}",
            errors,
        )
