"""The broker beside genuine Apache Kafka and librdkafka's mock cluster: same clients, same machine, one run."""
