"""One run of a stream, from its options to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.stream_run.description import describe
from abeyant.pipeline.commands.stream_run.plan import ENDING, Plan
from abeyant.pipeline.commands.stream_run.topic_sink import TopicSink
from abeyant.pipeline.commands.stream_run.watch import follow
from abeyant.pipeline.resolver.streams import ParquetSink, resolve_stream
from abeyant.pipeline.resolver.streams.end import END_OF_INPUT
from abeyant.pipeline.resolver.streams.options import DEFAULT_SHARDS
from abeyant.pipeline.results.ended import Counted
from abeyant.pipeline.results.sink import Folder
from abeyant.pipeline.sources.kafka import check_topics
from abeyant.pipeline.spark.location import is_uri, plain
from abeyant.pipeline.spark.session import SHUFFLE_PARTITIONS, shuffle_partitions

if TYPE_CHECKING:
    from abeyant.pipeline.commands.stream_run.lines import Lines

__all__ = ["run"]


def run(spark: SparkSession, plan: Plan, lines: Lines, asked: threading.Event) -> Counted:
    """Run a plan that was checked, until the input ends or it is asked to stop. Return what was sent to a topic.

    Raises `AbeyantError` for what the user can mend.
    """
    with plan.out.stream(spark) as folder:
        return _run(spark, plan, folder, lines, asked)


def _run(spark: SparkSession, plan: Plan, folder: Folder, lines: Lines, asked: threading.Event) -> Counted:
    topics = [*plan.topics, *(topic for topic in (plan.to_topic, plan.aside_topic) if topic)]
    if plan.kafka is not None and topics:
        check_topics(spark, plan.kafka, list(dict.fromkeys(topics)))
    # Inputs first, so that one that is refused leaves nothing behind.
    operations, events = (source.stream(spark) for source in (plan.operations, plan.events))
    begun = plan.begun(spark)
    drained = plan.check_in(folder, begun=begun)
    describe(folder, plan.checkpoint, plan.identity())
    folder.make_directory(ENDING)
    _no_empty_partitions(spark)
    _no_processes_for_files(spark, plan.checkpoint)
    _batches_as_large_as_told(spark)
    answers, sent = _answers(operations, events, plan), Counted()
    # The end is told when all has been read; or with all that there is, unless an earlier run has left a batch half
    # done: Spark does that one first, as it was.
    if not drained and not (plan.drain and not begun and plan.one_batch):
        _run_once(answers, plan, lines, asked, sent)
    if plan.drain and not asked.is_set():
        folder.put(f"{ENDING}/{END_OF_INPUT}", "end of input\n")
        _run_once(answers, plan, lines, asked, sent)
    return sent


def _no_empty_partitions(spark: SparkSession) -> None:
    """Take no more partitions than there are shards: Spark's 200 would be tasks that do nothing, in each batch."""
    if shuffle_partitions(spark) > DEFAULT_SHARDS:
        spark.conf.set(SHUFFLE_PARTITIONS, str(DEFAULT_SHARDS))


def _no_processes_for_files(spark: SparkSession, checkpoint: str) -> None:
    """Keep a local checkpoint by Hadoop's `FileSystem`, unless the session says otherwise.

    Spark's default is `FileContext`, for its atomic rename. On a local file system both look first and rename then, but
    `FileContext` starts `readlink`, a process, for each file that it looks at: some 70 in a batch of three partitions.
    """
    for name, value in LOCAL_CHECKPOINTS.items():
        if not is_uri(checkpoint) and spark.conf.get(name, None) is None:
            spark.conf.set(name, value)


LOCAL_CHECKPOINTS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}


_PART_BY_PART: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def _batches_as_large_as_told(spark: SparkSession) -> None:
    """Split the input that is there now into batches of the configured number of files or records.

    Spark's default is one batch of it all where a source does not know of "now", as the ticks' does not. The setting
    is for those: it asks the source for its end once, when the query starts.
    """
    spark.conf.set(_PART_BY_PART, "true")


def _answers(operations: DataFrame, events: DataFrame, plan: Plan) -> DataFrame:
    try:
        return resolve_stream(
            operations,
            events,
            deadline=plan.deadline,
            **plan.words,
            lateness=plan.lateness,
            time=plan.time,
            tick=plan.tick,
            end_of_input=plan.ending,
            forget_after=plan.forget_after,
        )
    except ValueError as error:
        raise AbeyantError(str(error)) from error


def _run_once(answers: DataFrame, plan: Plan, lines: Lines, asked: threading.Event, sent: Counted) -> None:
    # Without a scheme it is this machine's, whatever file system the cluster takes for granted.
    writer = answers.writeStream.foreachBatch(_sink(plan, sent)).option("checkpointLocation", plain(plan.checkpoint))
    if plan.trigger is None or plan.drain:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(plan.trigger * 1000)} milliseconds")
    follow(writer.start(), lines, asked)


def _sink(plan: Plan, sent: Counted) -> Callable[[DataFrame, int], None]:
    files = ParquetSink(plan.out.place, checkpoint=plan.checkpoint, manifests=plan.out.manifests)
    if plan.kafka is None or plan.to_topic is None:
        return files
    return TopicSink(plan.kafka, plan.to_topic, files, plan.aside_topic, sent)
