"""A pytest plugin: whatever selector loops a suite makes are ours. `-p aio.conformance.as_plugin`."""

from aio.conformance.stand_in import put_wheel_in_place

put_wheel_in_place()
