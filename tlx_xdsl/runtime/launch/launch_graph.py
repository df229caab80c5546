"""Launches that follow each other as one executable CUDA graph: one call of the driver enqueues them all.

The driver takes less of the host's time for a graph than for one kernel: what a launch looks up is in the graph. The
graph is what a capture makes of the launches, attributes and programmatic dependent launch included, and the driver
copies their parameters then; `updates` have it copy those of one launch again.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence

from .cuda_driver import CudaDriverError, KernelNodeParams
from .movable import MovableLaunch


class LaunchGraph:
    """A graph of launches for a stream of one CUDA context, with the parameters that they have now.

    `enqueue()` enqueues the launches. `updates[index]()` gives the graph the parameters that a launch has now, for when
    it is enqueued next. Both return the driver's code, 0 for success. The calling thread has the context current.

    The driver runs a graph once at a time, so that each stream has its own. Threads that share a graph take turns. It
    is not enqueued while its stream is captured.

    Raises CudaDriverError where the driver can't make or update it, ValueError where a kernel is there twice.
    """

    def __init__(self, launches: Sequence[MovableLaunch], stream: int):
        def capture(capturing: int) -> None:
            for launch in launches:
                launch(capturing)

        driver = launches[0].driver
        detail = "; ".join(launch.detail for launch in launches)
        graph, executable = driver.captured_graph(capture), 0
        try:
            nodes = driver.kernel_nodes(graph)
            if {*nodes} != {launch.function for launch in launches} or len(nodes) < len(launches):
                # Which node is whose is known by the kernel.
                raise ValueError(f"expected a graph of different kernels, got {detail}")
            executable = driver.instantiated(graph)
            # The parameters are read in the memory of the launches.
            self._launches = launches
            self.enqueue: Callable[[], int] = driver.graph_enqueuer(executable, stream)
            self.updates: list[Callable[[], int]] = []
            for launch in launches:
                node, launched = nodes[launch.function]
                self.updates.append(_updater(launch, executable, node, launched))
                # A driver that does not take this is found here.
                if code := self.updates[-1]():
                    raise driver.failure("cuGraphExecKernelNodeSetParams_v2", code, detail)
        except (CudaDriverError, ValueError):
            driver.destroy_graph(graph, executable)
            raise
        weakref.finalize(self, driver.destroy_graph, graph, executable).atexit = False


def _updater(launch: MovableLaunch, executable: int, node: int, launched: KernelNodeParams) -> Callable[[], int]:
    launched.parameters, launched.extra = launch.parameters, None
    return launch.driver.node_updater(executable, node, launched)


def refuse_while_capturing(kernel: str) -> None:
    """Raise RuntimeError when a stream of torch's is being captured: loading the kernel now would break the capture."""
    torch = sys.modules.get("torch")
    # Only who has torch in his process captures with it.
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_current_stream_capturing():
        return
    raise RuntimeError(
        f"the kernel '{kernel}' is launched for the first time with arguments of these types while a CUDA graph is "
        "captured: the CUDA driver can't load it now. Launch it once before the capture"
    )
