"""`make bench-spark`: resolve whole tables beside hand-written Spark plans, DuckDB and Polars, in one run."""
