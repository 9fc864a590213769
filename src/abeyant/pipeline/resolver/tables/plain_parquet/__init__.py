"""Tables that are nothing but plain Parquet files on this machine's paths: Python workers read them, past Spark.

`footers` says what is plain, `tasks` shares row groups out and reads them, and `map_side` does over them what
`from_spark` does over any other table. `steps` reads of the ends of files what else would take a job. `batch` enters
here.
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
