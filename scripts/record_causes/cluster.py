"""The cluster of a recording: a broker whose disk can be slowed, proxies that can delay what brokers replicate."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from abeyant.broker.genuine import Cluster
from abeyant.broker.genuine.cluster import HOST, Node

from .proxy import DelayingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

_THROTTLE = Path("/sys/fs/cgroup/blkio/abeyant-recording")
_DISK_MB = 400


class RecordedCluster(Cluster):
    """Three brokers; `far` names one whose replication passes proxies, `slow` one whose data is on a disk of its own.

    The disk is a loop device that cgroup v1 limits (root, and `blkio.throttle`).
    """

    far: int | None = None
    slow: int | None = None
    _proxies: tuple[DelayingProxy, ...] = ()
    _device: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[RecordedCluster]:
        """Start the nodes; in the end, stop them and take the disk and the proxies away."""
        try:
            if self.far is not None:
                mark = f"broker-{self.far}-".encode()
                self._proxies = tuple(
                    DelayingProxy(HOST, node.port + 6, node.port + 3, None if node.number == self.far else mark)
                    for node in self.nodes.values()
                )
            with super().running():
                yield self
        finally:
            for proxy in self._proxies:
                proxy.close()
            if self._device:
                subprocess.run(["umount", str(self._data(self.slow))], check=False)
                _THROTTLE.rmdir()

    def delay_network(self, seconds: float) -> None:
        """Let all that the far broker and the others replicate take so long, each way; 0 ends it."""
        for proxy in self._proxies:
            proxy.seconds = seconds

    def limit_disk(self, writes: int) -> None:
        """Let the slow broker's disk do so many writes a second; 0 ends it."""
        (_THROTTLE / "blkio.throttle.write_iops_device").write_text(f"{self._device} {writes}")
        process = self.nodes[self.slow or 0].process
        assert process is not None
        (_THROTTLE / "cgroup.procs").write_text(str(process.pid))

    def _data(self, number: int | None) -> Path:
        return self.nodes[number or 0].folder / "data"

    def _configure(self, node: Node) -> None:
        super()._configure(node)
        if node.number == self.slow:
            self._own_disk(node)
        if self.far is None:
            return
        own = {
            "listeners": f"PLAINTEXT://{HOST}:{node.port},REPLICATION://{HOST}:{node.port + 3}"
            f",CONTROLLER://{HOST}:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port},REPLICATION://{HOST}:{node.port + 6}",
            "inter.broker.listener.name": "REPLICATION",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
        with (node.folder / "server.properties").open("a") as file:
            file.writelines(f"{key}={value}\n" for key, value in own.items())

    def _own_disk(self, node: Node) -> None:
        image, data = node.folder / "disk.img", self._data(node.number)
        data.mkdir()
        with image.open("wb") as file:
            file.truncate(_DISK_MB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(data)], check=True)
        shutil.rmtree(data / "lost+found")  # Kafka takes every folder for a partition's
        status = data.stat().st_dev
        self._device = f"{status >> 8}:{status & 255}"
        _THROTTLE.mkdir(exist_ok=True)
