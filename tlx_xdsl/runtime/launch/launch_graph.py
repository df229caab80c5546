"""Launches that follow each other as one executable CUDA graph: one call of the driver enqueues them all."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

from tlx_xdsl.runtime.launch.cuda_driver import ERROR_INVALID_CONTEXT, CudaDriver
from tlx_xdsl.runtime.launch.movable import MovableLaunch


class LaunchGraph:
    """The launches as they are now, with the addresses that are in them."""

    def __init__(self, driver: CudaDriver, context: int, launches: Sequence[MovableLaunch]):
        def enqueue(stream: int) -> None:
            for launch in launches:
                launch(stream)

        self._driver = driver
        self._context = context
        handle = driver.executable_graph(enqueue)
        weakref.finalize(self, driver.destroy_executable_graph, handle).atexit = False
        self._enqueue = driver.graph_enqueuer(handle)

    def launch(self, stream: Any) -> None:
        """Enqueue them in a stream, of which `argument_of` made this."""
        if code := self._enqueue(stream):
            self._retry(code, stream)

    def _retry(self, code: int, stream: Any) -> None:
        if code == ERROR_INVALID_CONTEXT:
            self._driver.set_context(self._context)
            code = self._enqueue(stream)
        if code:
            raise self._driver.graph_error(code)


argument_of = ctypes.c_void_p.from_param
