"""Launches a compiled kernel with nothing but the CUDA driver.

A `Launcher` is made from what the compiler produces: the cubin and a few numbers. No Triton, torch or C
compiler is involved, so it also runs kernels that were compiled ahead of time on another machine.

Why beside Triton's launcher: that one needs Triton, and a C compiler for each signature. A bundle is launched where
there is neither, and `kernel.bind` repeats a launch whose arguments are read once, which Triton's does not offer. Other
launches of `@tlx_xdsl.jit` are Triton's. `cuda_driver.py` is the part of the driver that this takes, through ctypes.
"""

from __future__ import annotations

import math
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tlx_xdsl.grid import MOST_ALONG_Y_AND_Z, sizes_of

from .cuda_driver import (
    ClusterDimension,
    CudaDriver,
    CudaDriverError,
    FunctionAttribute,
    LaunchAttribute,
    LaunchAttributeId,
    LaunchAttributeValue,
    LaunchConfig,
    default_driver,
)
from .movable import MovableLaunch
from .parameters import (
    WORD,
    ArgumentSpec,
    Parameter,
    ParameterBlock,
    argument_name,
    offsets_of,
    read_arguments,
    store,
)

WARP_SIZE = 32

MAX_WARPS = 32
"""Warps of the largest CTA: 1024 threads."""

DEFAULT_SHARED_LIMIT = 48 * 1024
"""Bytes of dynamic shared memory that a kernel may use without asking first."""

PORTABLE_CLUSTER_SIZE = 8
"""CTAs of the largest cluster that needs no opt-in."""


@dataclass(eq=False)
class DeviceMemory:
    """Memory on the GPU, given back with the last reference to this object."""

    address: int
    size: int

    @staticmethod
    def allocate(driver: CudaDriver, size: int) -> DeviceMemory:
        """`size` bytes in the current context, aligned to at least 256 bytes.

        Raises CudaDriverError when there is not enough memory.
        """
        memory = DeviceMemory(driver.allocate(size), size)
        # The driver waits for kernels that use it. At the end of the process the context goes with all of its memory.
        weakref.finalize(memory, driver.free, memory.address).atexit = False
        return memory


@dataclass(frozen=True)
class Scratch:
    """The scratch memory of one kernel: where it keeps the tensor descriptors that it makes.

    Each CTA has its part, in the order of its number in the grid. Launches in one stream follow each other, so they
    share one piece of memory, which grows with the grid; launches in different streams may run at once, so each stream
    has its own. A piece that has become too small stays until the last launch that was bound to it is forgotten.
    """

    driver: CudaDriver
    size: int
    """Bytes per CTA, as the compiler has rounded them up."""
    _pieces: dict[tuple[int, int], DeviceMemory] = field(default_factory=dict[tuple[int, int], DeviceMemory])
    """By context and stream."""

    def memory(self, grid: Sequence[int], context: int, stream: int) -> DeviceMemory | None:
        """Memory for a launch of `grid` CTAs in a stream of the current context; None for a kernel that needs none.

        Raises CudaDriverError when there is not enough memory.
        """
        wanted = self.size * math.prod(grid)
        if not wanted:
            return None
        piece = self._pieces.get((context, stream))
        if piece is None or piece.size < wanted:
            piece = self._pieces[context, stream] = DeviceMemory.allocate(self.driver, wanted)
        return piece


class Launcher:
    """A compiled kernel, ready to be launched on the current GPU.

    cubin:            the kernel's code.
    name:             its entry point.
    arguments:        its arguments in order; plain (name, type) pairs will do.
    num_warps:        warps per CTA in total, those of warp-specialised partitions included.
    shared:           dynamic shared memory per CTA, in bytes.
    tensordesc_meta:  for each tensordesc argument what Triton's metadata says of it: `swizzle`, `elem_size`
                      (bytes), `elem_type`, `block_size` (the TMA box, already clamped), `fp4_padded`.
    cluster:          CTAs per cluster along x, y, z. Grids count CTAs, so they must be multiples of it.
    global_scratch_size: bytes of scratch memory per CTA, allocated at the first launch of a stream (`Scratch`).
    profile_scratch_size: bytes of Triton's profiler per CTA; only 0 is supported.
    launch_pdl:       the kernel may start before its predecessor in the stream has finished.
    launch_cooperative_grid: all CTAs must be resident at once.
    profile_memory:   address of memory that all CTAs get as the last pointer, for probes (`timing/probes.py`).
    driver:           replaces the process's CUDA driver; for tests.

    Making a Launcher needs no GPU: the cubin is loaded at the first launch in a CUDA context, once per
    context.

    Raises ValueError for a signature or a number that no launch could satisfy, NotImplementedError for the
    profiler's memory, and for scratch memory with launch_pdl: two launches would use it at once.
    """

    def __init__(
        self,
        cubin: bytes,
        *,
        name: str,
        arguments: Sequence[ArgumentSpec] | Sequence[tuple[str, str]],
        num_warps: int,
        shared: int,
        tensordesc_meta: Sequence[Mapping[str, Any]] = (),
        cluster: Sequence[int] = (1, 1, 1),
        global_scratch_size: int = 0,
        profile_scratch_size: int = 0,
        launch_pdl: bool = False,
        launch_cooperative_grid: bool = False,
        profile_memory: int = 0,
        driver: CudaDriver | None = None,
    ):
        self.cubin = cubin
        self.name = name
        self.arguments = tuple(ArgumentSpec(*argument) for argument in arguments)
        self.num_warps = num_warps
        self.shared = shared
        self.cluster = tuple(cluster)
        self._check_resources(global_scratch_size, profile_scratch_size, launch_pdl)
        # What to do with each argument: its parameter, where that stands in the block, its name in errors.
        self._plan: list[tuple[Parameter, slice, str]] = []
        self._sizes: list[int] = []
        parameters = read_arguments(name, self.arguments, tensordesc_meta)
        for index, (spec, parameter) in enumerate(zip(self.arguments, parameters, strict=True)):
            first = len(self._sizes)
            self._sizes.extend(parameter.sizes)
            self._plan.append((parameter, slice(first, len(self._sizes)), argument_name(name, index, spec)))
        self._sizes.extend((WORD, WORD))  # global and profile scratch
        self._offsets = offsets_of(self._sizes)
        self._attributes = _launch_attributes(self.cluster, launch_pdl, launch_cooperative_grid)
        self._driver = driver if driver is not None else default_driver()
        self._scratch = Scratch(self._driver, global_scratch_size)
        self._profile_memory = profile_memory
        self._functions: dict[int, int] = {}

    def __call__(self, grid: int | Sequence[int], *args: Any, stream: Any = None) -> None:
        """Enqueue the kernel on a grid of `grid` CTAs (one to three numbers); return without waiting for it.

        Reading the arguments takes some ten microseconds per descriptor: use `bind` for launches that repeat.

        stream: a CUstream as an integer, an object with `cuda_stream` such as torch's, or None for the legacy
        default stream, which is the one torch works on by default.

        A grid with a zero in it launches nothing, as in Triton.

        Raises TypeError for a wrong number or type of arguments, OverflowError for a number that its type
        cannot hold, ValueError for an impossible grid, CudaDriverError if the driver refuses the kernel or
        the launch.
        """
        self.bind(grid, *args, stream=stream)()

    def bind(self, grid: int | Sequence[int], *args: Any, stream: Any = None) -> Callable[[], None]:
        """Prepare a launch and return a callable that repeats it with almost no host work.

        The arguments are read now: tensors by address, descriptors by their tensor map, numbers by value. The
        callable keeps them alive, and must be called in the CUDA context that is current now. Raises as a
        call does.
        """
        dims = self._check_grid(grid)
        self._check_count(args)
        if 0 in dims:
            return _launch_nothing
        # A tensor map cannot be encoded, nor an address looked up, before there is a context.
        context = self._driver.ensure_context()
        function = self._function(context)
        scratch = self._scratch.memory(dims, context, _stream_handle(stream))
        block = self._fill(args, scratch)
        config = self._config(dims, stream)
        return self._driver.prepare_launch(
            config,
            function,
            block.pointers,
            keep_alive=(block, args, stream, scratch),
            detail=self._described(dims),
        )

    def movable(self, grid: int | Sequence[int], *args: Any) -> MovableLaunch:
        """Prepare a launch whose tensors may lie elsewhere, and whose stream may be another, each time.

        The arguments are read as by `bind`, but not kept alive: the caller puts in the addresses of the tensors that
        are there (`MovableLaunch.mover`). Raises as `bind` does, ValueError for an empty grid.
        """
        dims = self._check_grid(grid)
        self._check_count(args)
        if 0 in dims:
            raise ValueError(f"kernel {self.name!r}: expected a grid with programs, got {dims}")
        context = self._driver.ensure_context()
        function = self._function(context)
        block = self._fill(args, None)
        movers = {
            spec.name: mover
            for spec, (parameter, slots, where) in zip(self.arguments, self._plan, strict=True)
            if (mover := parameter.mover(block.addresses[slots], where, self._driver)) is not None
        }
        pointers = {
            spec.name: slots.start
            for spec, (_, slots, _) in zip(self.arguments, self._plan, strict=True)
            if spec.type.startswith("*")
        }
        return MovableLaunch(
            self._driver,
            context,
            self._config(dims, None),
            function,
            block,
            movers,
            pointers,
            scratch_bytes=self._scratch.size * math.prod(dims),
            detail=self._described(dims),
        )

    def is_loaded(self) -> bool:
        """Return whether the kernel is loaded in the current CUDA context, so that a launch need not do that."""
        return self._driver.ensure_context() in self._functions

    def _described(self, dims: tuple[int, int, int]) -> str:
        return (
            f"kernel {self.name!r}, grid {dims}, cluster {self.cluster}, "
            f"{self.num_warps} warps, {self.shared} bytes of shared memory"
        )

    def _check_resources(self, global_scratch_size: int, profile_scratch_size: int, launch_pdl: bool) -> None:
        kernel = f"kernel {self.name!r}"
        if not 1 <= self.num_warps <= MAX_WARPS:
            raise ValueError(f"{kernel}: expected num_warps of 1 to {MAX_WARPS}, got {self.num_warps}")
        if self.shared < 0:
            raise ValueError(f"{kernel}: expected shared of 0 bytes or more, got {self.shared}")
        if len(self.cluster) != 3 or min(self.cluster) < 1:
            raise ValueError(f"{kernel}: expected cluster as three positive numbers, got {self.cluster}")
        if global_scratch_size < 0:
            raise ValueError(f"{kernel}: expected global_scratch_size of 0 bytes or more, got {global_scratch_size}")
        if profile_scratch_size > 0:
            raise NotImplementedError(f"{kernel} needs {profile_scratch_size} bytes of profile scratch memory per CTA")
        if global_scratch_size and launch_pdl:
            raise NotImplementedError(
                f"{kernel} needs scratch memory, which a launch that starts early would share with its predecessor"
            )

    def _check_grid(self, grid: int | Sequence[int]) -> tuple[int, int, int]:
        dims = sizes_of(grid, along_y_and_z=MOST_ALONG_Y_AND_Z, of=f"kernel {self.name!r}: ")
        for axis, extent, cluster in zip("xyz", dims, self.cluster, strict=True):
            if extent % cluster:
                raise ValueError(
                    f"kernel {self.name!r}: expected a grid that is a multiple of the cluster's "
                    f"{cluster} CTAs in {axis}, got {extent}"
                )
        return dims

    def _check_count(self, args: Sequence[Any]) -> None:
        if len(args) != len(self.arguments):
            names = ", ".join(spec.name for spec in self.arguments)
            raise TypeError(
                f"kernel {self.name!r}: expected {len(self.arguments)} arguments ({names}), got {len(args)}"
            )

    def _function(self, context: int) -> int:
        """Return the kernel's handle in `context`, loading it there the first time."""
        function = self._functions.get(context)
        if function is None:
            function = self._functions[context] = self._load()
        return function

    def _load(self) -> int:
        driver = self._driver
        available = driver.max_shared_memory()
        if self.shared > available:
            raise CudaDriverError(
                f"loading kernel {self.name!r}",
                f"it needs {self.shared} bytes of shared memory per CTA, this GPU offers {available}",
            )
        function = driver.get_function(driver.load_module(self.cubin), self.name)
        self._check_signature(function)
        if self.shared > DEFAULT_SHARED_LIMIT:
            driver.prefer_shared_memory(function)
            driver.set_function_attribute(function, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, self.shared)
        if math.prod(self.cluster) > PORTABLE_CLUSTER_SIZE:
            driver.set_function_attribute(function, FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        return function

    def _check_signature(self, function: int) -> None:
        """Compare the parameters with what the cubin declares.

        The driver reads as many parameters as the kernel has: with a list too short it would run past the
        end.
        """
        declared = self._driver.parameter_sizes(function, len(self._sizes) + 1)
        if declared is not None and declared != self._sizes:
            names = ", ".join(f"{spec.name}: {spec.type}" for spec in self.arguments)
            raise ValueError(
                f"kernel {self.name!r}: the signature ({names}) makes parameters of {self._sizes} bytes, "
                f"the cubin declares {declared}"
            )

    def _fill(self, args: Sequence[Any], scratch: DeviceMemory | None) -> ParameterBlock:
        block = ParameterBlock(self._offsets)
        for (parameter, slots, where), value in zip(self._plan, args, strict=True):
            parameter.write(value, block.addresses[slots], where, self._driver)
        # The two addresses that follow are null where a kernel needs no such memory.
        if scratch is not None:
            store(block.addresses[-2], struct.pack("<Q", scratch.address))
        if self._profile_memory:
            store(block.addresses[-1], struct.pack("<Q", self._profile_memory))
        return block

    def _config(self, dims: tuple[int, int, int], stream: Any) -> LaunchConfig:
        config = LaunchConfig()
        config.grid_x, config.grid_y, config.grid_z = dims
        config.block_x, config.block_y, config.block_z = WARP_SIZE * self.num_warps, 1, 1
        config.shared_bytes = self.shared
        config.stream = _stream_handle(stream)
        if self._attributes:
            # ctypes keeps the array alive with the structure.
            config.attributes = (LaunchAttribute * len(self._attributes))(*self._attributes)
            config.attribute_count = len(self._attributes)
        return config


def launch_facts(metadata: Any, **more: Any) -> dict[str, Any]:
    """The arguments of a `Launcher` in the metadata of a kernel or a bundle's manifest; `more` takes precedence."""
    return {name: getattr(metadata, name) for name in _FACTS if hasattr(metadata, name)} | more


_FACTS = (
    "num_warps",
    "shared",
    "tensordesc_meta",
    "cluster",
    "global_scratch_size",
    "profile_scratch_size",
    "launch_pdl",
    "launch_cooperative_grid",
)


def _launch_attributes(
    cluster: Sequence[int], launch_pdl: bool, launch_cooperative_grid: bool
) -> list[LaunchAttribute]:
    attributes: list[LaunchAttribute] = []
    if launch_pdl:
        attributes.append(
            LaunchAttribute(id=LaunchAttributeId.PROGRAMMATIC_STREAM_SERIALIZATION, value=LaunchAttributeValue(flag=1))
        )
    if launch_cooperative_grid:
        attributes.append(LaunchAttribute(id=LaunchAttributeId.COOPERATIVE, value=LaunchAttributeValue(flag=1)))
    if math.prod(cluster) > 1:
        dimension = ClusterDimension(*cluster)
        attributes.append(
            LaunchAttribute(
                id=LaunchAttributeId.CLUSTER_DIMENSION,
                value=LaunchAttributeValue(cluster_dimension=dimension),
            )
        )
    return attributes


def _stream_handle(stream: Any) -> int:
    if stream is None:
        return 0
    handle = getattr(stream, "cuda_stream", stream)
    if not isinstance(handle, int):
        raise TypeError(f"stream: expected an integer, an object with cuda_stream or None, got {stream!r}")
    return handle


def _launch_nothing() -> None:
    """Stand in for the launch of an empty grid, which the driver would refuse."""
