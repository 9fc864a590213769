"""The loops on which virtual time is tested. One that is added here goes through all of its tests."""

import asyncio
from collections.abc import Callable

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.SelectorEventLoop}
