"""One run of `abeyance stream`: inputs opened, a query started, watched, and stopped between two batches."""
