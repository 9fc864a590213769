"""`abeyant resolve` for small local files, computed in this process with `abeyant.tables`. Imports no PySpark."""
