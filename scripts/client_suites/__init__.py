"""The test suites of other people's Kafka clients, run against brokers of ours: `python -m scripts.client_suites`."""
