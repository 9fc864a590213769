"""Write outcomes to a Kafka topic with Spark's sink: each at least once, and any duplicate is an identical record.

Spark's sink has no transactions: a batch that was killed half-way is written again from its beginning. The outcomes
depend only on the rows that were read, and a record's key names the operation, so a duplicate has the same key and the
same value. A compacted topic keeps one of the duplicates. A consumer that keeps the last value of a key, or drops a key
that it has seen, counts each operation once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.analysis.outcomes import binned
from abeyant.pipeline.resolver.rejected import REJECTED_ROWS, TIME_FORMAT
from abeyant.pipeline.results.outcome_counts import SAMPLED, Counted
from abeyant.pipeline.sources.kafka import client_options
from abeyant.pipeline.sources.source import Kafka

__all__ = ["TopicSink", "outcome_records"]

_FORM: Final = {"timestampFormat": TIME_FORMAT, "ignoreNullFields": "false"}


@dataclass(frozen=True)
class TopicSink:
    """Sink for `foreachBatch`: writes outcomes to `topic`, rejected rows to `aside_topic` or by `write_rejected`.

    Counts the outcomes in `sent`, and keeps a sample of the expired operations there.
    """

    kafka: Kafka
    topic: str
    write_rejected: Callable[[DataFrame, int], None] | None = None
    aside_topic: str | None = None
    sent: Counted = field(default_factory=Counted)

    def __call__(self, answers: DataFrame, batch: int) -> None:
        """Write one batch of outcomes and rejected rows (`answers`)."""
        answers.persist()
        try:
            fine = F.col("reason").isNull()
            outcomes = answers.where(fine)
            self._send(outcome_records(outcomes), self.topic)
            self.count(outcomes)
            if self.aside_topic is not None:
                self._send(_rejected_records(answers.where(~fine)), self.aside_topic)
            elif self.write_rejected is not None:
                self.write_rejected(answers.where(~fine), batch)
        finally:
            answers.unpersist()

    def count(self, outcomes: DataFrame) -> None:
        """Count outcomes and sample expired operations, in two small jobs.

        Spark's `Observation` cannot count them here: none completes in Spark's Kafka sink.
        """
        counts = binned(outcomes.coalesce(1)).toPandas()
        self.sent.waits.add(counts)
        expired = int(counts.loc[counts["outcome"] == "expired", "operations"].sum())
        if expired:
            one_in = self.sent.sample.sample_at_most(expired)
            sample = outcomes.where(F.col("outcome") == "expired").where(F.rand() * one_in < 1)
            self.sent.sample.add_drawn(sample.select(*SAMPLED).coalesce(1).toArrow())

    def _send(self, records: DataFrame, topic: str) -> None:
        records.write.format("kafka").options(**client_options(self.kafka), topic=topic).save()


def outcome_records(outcomes: DataFrame) -> DataFrame:
    """Return outcomes as records: the key is the JSON list [instance, op_id], the value a JSON object."""
    rejected = REJECTED_ROWS.fieldNames()
    names = [name for name in outcomes.columns if name not in rejected]
    return outcomes.select(_key("instance", "op_id"), _json(F.struct(*names)).alias("value"))


def _rejected_records(rows: DataFrame) -> DataFrame:
    return rows.select(
        F.lit(None).cast("string").alias("key"), _json(F.struct("table", "reason", "row")).alias("value")
    )


def _key(*columns: str) -> Column:
    return F.to_json(F.array(*columns)).alias("key")


def _json(struct: Column) -> Column:
    return F.to_json(struct, _FORM)
