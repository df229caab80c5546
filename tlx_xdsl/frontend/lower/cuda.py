"""Lowering of functions of NVIDIA GPUs: `tl.extra.cuda` and `tl.target_info`."""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.dialects import tt
from tlx_xdsl.language.core import dtype, int32, int64

from ..calls import Call, lowers
from ..types import ir_type
from ..values import Constexpr, Tensor, Value

_THREADS_PER_WARP = 32


@dataclass(frozen=True)
class _Target:
    """Result of `tl.target_info.current_target()`, with the fields of Triton's `GPUTarget`."""

    arch: int
    """Compute capability, such as 90."""
    backend: str = "cuda"
    warp_size: int = _THREADS_PER_WARP


def _register(call: Call, asm: str, constraint: str, element: dtype, *, pure: bool) -> Value:
    """A special register of PTX ("Special Registers" of the PTX ISA)."""
    return Tensor(
        call.builder.emit(
            tt.ElementwiseInlineAsmOp,
            [],
            results=[[ir_type(element)]],
            asm_string=asm,
            constraints=constraint,
            packed_element=1,
            pure=pure,
        ).results[0],
        element,
    )


@lowers("tl.extra.cuda.globaltimer")
def _globaltimer(call: Call) -> Value:
    # Each reading is another time: not pure.
    return _register(call, "mov.u64 $0, %globaltimer;", "=l", int64, pure=False)


@lowers("tl.extra.cuda.smid")
def _smid(call: Call) -> Value:
    return _register(call, "mov.u32 $0, %smid;", "=r", int32, pure=True)


@lowers("tl.extra.cuda.num_warps")
def _num_warps(call: Call) -> Value:
    return Constexpr(call.visitor.unit.num_warps)


@lowers("tl.extra.cuda.num_threads")
def _num_threads(call: Call) -> Value:
    return Constexpr(call.visitor.unit.num_warps * _THREADS_PER_WARP)


@lowers("tl.extra.cuda.gdc_wait")
def _gdc_wait(call: Call) -> None:
    call.builder.insert(tt.GridDependencyWaitOp())


@lowers("tl.extra.cuda.gdc_launch_dependents")
def _gdc_launch_dependents(call: Call) -> None:
    call.builder.insert(tt.GridDependencyLaunchDependentsOp())


@lowers("tl.target_info.current_target")
def _current_target(call: Call) -> Value:
    return Constexpr(_Target(call.visitor.capability))


@lowers("tl.target_info.is_cuda")
def _is_cuda(call: Call) -> Value:
    return Constexpr(True)


@lowers("tl.target_info.cuda_capability_geq")
def _cuda_capability_geq(call: Call) -> Value:
    wanted = 10 * call.integer("major") + call.integer("minor")
    return Constexpr(call.visitor.capability >= wanted)


def _never(call: Call) -> Value:
    return Constexpr(False)


for _name in ("is_hip", "is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250"):
    lowers(f"tl.target_info.{_name}")(_never)
