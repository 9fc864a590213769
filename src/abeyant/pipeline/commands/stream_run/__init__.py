"""One run of `abeyant stream`: inputs opened, a query started, watched, and stopped between two batches."""
