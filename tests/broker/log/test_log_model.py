"""The log beside a plain list, driven at random."""

from __future__ import annotations

from broker.log.log_machine import LogMachine

TestLogInMemory = LogMachine.TestCase
