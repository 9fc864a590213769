"""Measure our broker beside genuine Apache Kafka and librdkafka's mock cluster: same clients and machine, one run."""
