"""Tables that are nothing but plain Parquet files on this machine's paths: Python workers read them, past Spark.

`footers` says what is plain, `tasks` shares row groups out and reads them, and `map_side` does over them what
`from_spark` does over any other table. `batch` enters by `files_of` alone.
"""

from abeyant.pipeline.resolver.tables.plain_parquet.map_side import files_of

__all__ = ["files_of"]
