"""Laws T1, T2, T3, T6, T7, T9 of the wheel, against the sorted list, whatever is done to it."""

from hypothesis import settings

from engine.wheel_machine import WheelMachine

TestWheelAgainstTheSortedList = WheelMachine.TestCase
TestWheelAgainstTheSortedList.settings = settings(max_examples=5 * settings().max_examples)
