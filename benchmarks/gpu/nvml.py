"""SM clock and power of a GPU, read from NVIDIA's management library through ctypes: a reading takes microseconds.

Names and numbers are those of NVIDIA's public header `nvml.h`.
"""

from __future__ import annotations

import ctypes

_LIBRARY = "libnvidia-ml.so.1"
_CLOCK_SM = 1  # NVML_CLOCK_SM


class Gpu:
    """One GPU, by its number among those that the driver lists.

    Where there is no such library, or it does not answer, readings are None: a benchmark goes on without them.
    """

    def __init__(self, index: int = 0):
        self._library: ctypes.CDLL | None = None
        self._handle = ctypes.c_void_p()
        try:
            library = ctypes.CDLL(_LIBRARY)
        except OSError:
            return
        if library.nvmlInit_v2() == 0 and not library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(self._handle)):
            self._library = library

    def clock_mhz(self) -> int | None:
        """The clock of the multiprocessors now."""
        value = ctypes.c_uint()
        if self._library is None:
            return None
        failed = self._library.nvmlDeviceGetClockInfo(self._handle, _CLOCK_SM, ctypes.byref(value))
        return None if failed else value.value

    def driver(self) -> str | None:
        """The version of the driver."""
        text = ctypes.create_string_buffer(80)
        if self._library is None or self._library.nvmlSystemGetDriverVersion(text, len(text)):
            return None
        return text.value.decode()

    def power_w(self) -> float | None:
        """Power that the GPU draws now, in watts."""
        value = ctypes.c_uint()
        if self._library is None:
            return None
        failed = self._library.nvmlDeviceGetPowerUsage(self._handle, ctypes.byref(value))
        return None if failed else value.value / 1000
