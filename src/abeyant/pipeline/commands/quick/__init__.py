"""`abeyant resolve` for small local files, in this process: `abeyant.tables` in place of Spark. Imports no PySpark."""
