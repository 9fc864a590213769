"""The report: one HTML file, complete in itself, of the analysis of a request log."""
