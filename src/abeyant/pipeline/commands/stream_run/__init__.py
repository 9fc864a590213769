"""Run `abeyant stream` once: open the inputs, start a query, watch it, and stop it between two batches."""
