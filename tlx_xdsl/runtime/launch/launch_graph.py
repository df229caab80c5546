"""Launches that follow each other as one executable CUDA graph: one call of the driver enqueues them all.

The driver takes less of the host's time for a graph than for one kernel: what a launch looks up is in the graph. The
graph is what a capture makes of the launches, attributes and programmatic dependent launch included, and the driver
copies their parameters then; `update` has it copy those of one launch again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

from tlx_xdsl.runtime.launch.cuda_driver import ERROR_INVALID_CONTEXT, CudaDriverError, KernelNodeParams
from tlx_xdsl.runtime.launch.movable import MovableLaunch


class LaunchGraph:
    """A graph of launches for a stream of one CUDA context, with the parameters that they have now.

    The driver runs a graph once at a time, so that each stream has its own. Launching and updating are not
    synchronised: threads that share a graph take turns. It is not launched while its stream is captured.

    Raises CudaDriverError where the driver can't make it, ValueError where a kernel is there twice.
    """

    def __init__(self, launches: Sequence[MovableLaunch], stream: int):
        def capture(capturing: int) -> None:
            for launch in launches:
                launch(capturing)

        self._launches = launches
        self._driver = driver = launches[0].driver
        graph = driver.captured_graph(capture)
        try:
            nodes = driver.kernel_nodes(graph)
            if {*nodes} != {launch.function for launch in launches} or len(nodes) < len(launches):
                # Which node is whose is known by the kernel.
                raise ValueError(f"expected a graph of different kernels, got {self._detail}")
            executable = driver.instantiated(graph)
        except (CudaDriverError, ValueError):
            driver.destroy_graph(graph)
            raise
        weakref.finalize(self, driver.destroy_graph, graph, executable).atexit = False
        # Enqueues the launches and returns the driver's code, 0 for success, for `retry`.
        self.enqueue = driver.graph_enqueuer(executable, stream)
        self._updates = [self._updater(executable, launch, *nodes[launch.function]) for launch in launches]
        for index in range(len(launches)):
            # A driver that does not take this is found here.
            self.update(index)

    def _updater(
        self, executable: int, launch: MovableLaunch, node: int, launched: KernelNodeParams
    ) -> Callable[[], int]:
        launched.parameters, launched.extra = launch.parameters, None
        return self._driver.node_updater(executable, node, launched)

    def update(self, index: int) -> None:
        """Give the graph the parameters that a launch has now, for when it is launched next."""
        if code := self._updates[index]():
            self._retry(code, self._updates[index], "cuGraphExecKernelNodeSetParams_v2")

    def retry(self, code: int) -> None:
        """Enqueue the launches again after `code` where that helps.

        Raises CudaDriverError if the driver refuses it, or reports the failure of an earlier kernel here.
        """
        self._retry(code, self.enqueue, "cuGraphLaunch")

    def _retry(self, code: int, call: Callable[[], int], name: str) -> None:
        if code == ERROR_INVALID_CONTEXT:
            # A thread that has made no call to CUDA yet.
            self._driver.set_context(self._launches[0].context)
            code = call()
        if code:
            raise self._driver.failure(name, code, self._detail)

    @property
    def _detail(self) -> str:
        return "; ".join(launch.detail for launch in self._launches)
