"""K12, the conformance set: in every scenario a client sees what genuine Kafka shows it.

- `scenarios/` has the scenarios, a module a family. Each is a function that plays on a `Stage` and is written once.
- `recorded/` has what genuine Kafka answered. `make test` plays the scenarios on ours and compares with that;
  `make test-kafka` plays them on genuine Kafka, so that the record is known to be true.
  `make record-kafka` writes it anew.
- `answers.py` names what may differ, `differences.py` what does, with the reasons.
"""
