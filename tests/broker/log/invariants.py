"""Assert what always holds in a log, against its batches themselves."""

from __future__ import annotations

from itertools import pairwise

from abeyant.broker.log import Log
from abeyant.broker.log.epochs import LeaderEpochs
from abeyant.broker.log.producers import Producers
from abeyant.broker.log.segment import Segment


def check_log(log: Log) -> None:
    bases = log._bases
    assert bases == [segment.base_offset for segment in log._segments] == sorted(set(bases))
    assert bases[0] <= log.start_offset <= log.end_offset
    assert log.size == sum(segment.size for segment in log._segments)
    assert set(log._snapshots) == set(bases)
    for segment, end in zip(log._segments, [*bases[1:], log.end_offset], strict=True):
        check_segment(segment)
        assert segment.next_offset <= end
    check_epochs(log.epochs)
    for batch in log._batches(log.start_offset):
        if batch.base_offset >= log.start_offset:
            epoch = batch.leader_epoch if batch.leader_epoch >= 0 else None
            assert log.epochs.at(batch.base_offset) == epoch, (batch, log.epochs.entries())
    check_producers(log.producers, log.end_offset)


def check_segment(segment: Segment) -> None:
    end = 0
    greatest = -1
    previous = segment.base_offset - 1
    for index, batch in enumerate(segment.batches()):
        end += batch.size
        greatest = max(greatest, batch.max_timestamp)
        assert batch.crc_is_valid(), batch
        assert batch.base_offset > previous, (previous, batch)
        assert (segment._offsets[index], segment._lasts[index]) == (batch.base_offset, batch.last_offset)
        assert (segment._ends[index], segment._times[index]) == (end, greatest)
        previous = batch.last_offset


def check_epochs(epochs: LeaderEpochs) -> None:
    for column in zip(*epochs.entries(), strict=True):
        assert list(column) == sorted(set(column)), epochs.entries()


def check_producers(producers: Producers, end_offset: int) -> None:
    for producer_id, state in producers._states.items():
        assert state.producer_id == producer_id
        assert producers.open.get(producer_id) == state.transaction_start
        assert len(state.batches) <= 5
        for one, next_one in pairwise(state.batches):
            assert one.last_offset < next_one.base_offset, state.batches
        assert not state.batches or state.batches[-1].last_offset < end_offset, state.batches
    assert set(producers.open) <= set(producers._states)
    markers = [aborted.last_offset for aborted in producers._aborted]
    assert markers == sorted(set(markers))
