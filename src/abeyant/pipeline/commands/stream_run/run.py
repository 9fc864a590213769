"""Run a stream, from its checked plan to the end of its query."""

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
from abeyant.pipeline.results.outcome_counts import Counted
from abeyant.pipeline.results.sink import Folder
from abeyant.pipeline.sources.kafka import check_topics
from abeyant.pipeline.spark.location import is_uri, plain
from abeyant.pipeline.spark.session import SHUFFLE_PARTITIONS, shuffle_partitions

if TYPE_CHECKING:
    from abeyant.pipeline.commands.stream_run.lines import Lines

__all__ = ["run"]


def run(spark: SparkSession, plan: Plan, lines: Lines, stop_requested: threading.Event) -> Counted:
    """Run a checked plan until the input ends or `stop_requested` is set. Return counts of outcomes sent to a topic.

    Raises `AbeyantError` for errors that the user can fix.
    """
    with plan.out.stream(spark) as folder:
        return _run(spark, plan, folder, lines, stop_requested)


def _run(spark: SparkSession, plan: Plan, folder: Folder, lines: Lines, stop_event: threading.Event) -> Counted:
    topics = [*plan.topics, *(topic for topic in (plan.to_topic, plan.aside_topic) if topic)]
    if plan.kafka is not None and topics:
        check_topics(spark, plan.kafka, list(dict.fromkeys(topics)))
    # Open the inputs first, so that one that is refused leaves nothing behind.
    operations, events = (source.stream(spark) for source in (plan.operations, plan.events))
    has_begun = plan.begun(spark)
    drained = plan.check_in(folder, begun=has_begun)
    describe(folder, plan.checkpoint, plan.identity())
    folder.make_directory(ENDING)
    _no_empty_partitions(spark)
    _no_processes_for_files(spark, plan.checkpoint)
    _split_available_now(spark)
    answers, sent = _answers(operations, events, plan), Counted()
    # Signal the end of the input when all has been read. If the first batch has all of the input, signal it at once,
    # unless an earlier run left a batch half done: Spark repeats that one first, unchanged.
    if not drained and not (plan.drain and not has_begun and plan.one_batch):
        _run_once(answers, plan, lines, stop_event, sent)
    if plan.drain and not stop_event.is_set():
        folder.put(f"{ENDING}/{END_OF_INPUT}", "end of input\n")
        _run_once(answers, plan, lines, stop_event, sent)
    return sent


def _no_empty_partitions(spark: SparkSession) -> None:
    """Limit the shuffle partitions to the number of shards: most of Spark's 200 would be empty tasks in each batch."""
    if shuffle_partitions(spark) > DEFAULT_SHARDS:
        spark.conf.set(SHUFFLE_PARTITIONS, str(DEFAULT_SHARDS))


def _no_processes_for_files(spark: SparkSession, checkpoint: str) -> None:
    """Write a local checkpoint with Hadoop's `FileSystem`, unless the session sets another class.

    Spark's default is `FileContext`, for its atomic rename. On a local file system both classes check and then rename,
    but `FileContext` starts a `readlink` process for each file that it checks: some 70 in a batch of three partitions.
    """
    for name, value in LOCAL_CHECKPOINTS.items():
        if not is_uri(checkpoint) and spark.conf.get(name, None) is None:
            spark.conf.set(name, value)


LOCAL_CHECKPOINTS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}


_BY_BATCH_SIZE: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def _split_available_now(spark: SparkSession) -> None:
    """Split the input that is there now into batches of the configured number of files or records.

    By default, Spark reads all input in one batch if any source does not support `availableNow`; the source of ticks
    does not. With this setting Spark asks such a source for its end offset once, when the query starts.
    """
    spark.conf.set(_BY_BATCH_SIZE, "true")


def _answers(operations: DataFrame, events: DataFrame, plan: Plan) -> DataFrame:
    try:
        return resolve_stream(
            operations,
            events,
            deadline=plan.deadline,
            **plan.rules,
            lateness=plan.lateness,
            time=plan.time,
            tick=plan.tick,
            end_of_input=plan.ending,
            forget_after=plan.forget_after,
        )
    except ValueError as error:
        raise AbeyantError(str(error)) from error


def _run_once(answers: DataFrame, plan: Plan, lines: Lines, stop_event: threading.Event, sent: Counted) -> None:
    # Without a scheme it is a path of this machine, whatever the cluster's default file system.
    writer = answers.writeStream.foreachBatch(_sink(plan, sent)).option("checkpointLocation", plain(plan.checkpoint))
    if plan.trigger is None or plan.drain:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(plan.trigger * 1000)} milliseconds")
    follow(writer.start(), lines, stop_event)


def _sink(plan: Plan, sent: Counted) -> Callable[[DataFrame, int], None]:
    files = ParquetSink(plan.out.place, checkpoint=plan.checkpoint, manifests=plan.out.manifests)
    if plan.kafka is None or plan.to_topic is None:
        return files
    return TopicSink(plan.kafka, plan.to_topic, files, plan.aside_topic, sent)
