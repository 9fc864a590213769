"""Read tables that are plain Parquet files, on paths or on a store, in Python workers and not by Spark.

`footers` decides which tables are plain, `tasks` shares row groups out and reads them, and `map_side` packs them as
`from_spark` packs any other table. `steps` looks for the condition `then` in files' footers, which saves a job. `batch`
and `by_rules` import from here.
"""

from abeyant.pipeline.resolver.tables.plain_parquet.footers import PlainTable, plain_table
from abeyant.pipeline.resolver.tables.plain_parquet.map_side import (
    Files,
    files_of,
    plain_operations,
    read_by_workers,
)
from abeyant.pipeline.resolver.tables.plain_parquet.steps import may_have_steps
from abeyant.pipeline.resolver.tables.plain_parquet.tasks import Task, chunks_of, tasks_of

__all__ = [
    "Files",
    "PlainTable",
    "Task",
    "chunks_of",
    "files_of",
    "may_have_steps",
    "plain_operations",
    "plain_table",
    "read_by_workers",
    "tasks_of",
]
