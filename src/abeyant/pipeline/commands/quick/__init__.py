"""`abeyant resolve` for small local files: in this process, with `abeyant.tables`. Imports no PySpark."""
