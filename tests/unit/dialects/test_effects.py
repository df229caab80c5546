"""Declared effects: operations that must not be merged, moved or dropped say so; the others say that they may."""

import pytest
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects, has_effects, is_side_effect_free

from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.quick

FREE = {
    "tt.addptr", "tt.advance", "tt.approx_divf", "tt.bitcast", "tt.broadcast", "tt.cat", "tt.clampf", "tt.dot",
    "tt.dot_scaled", "tt.expand_dims", "tt.fp_to_fp", "tt.gather", "tt.get_num_programs", "tt.get_program_id",
    "tt.histogram", "tt.int_to_ptr", "tt.join", "tt.make_range", "tt.make_tensor_descriptor", "tt.make_tensor_ptr",
    "tt.mulhiui", "tt.precise_divf", "tt.precise_sqrt", "tt.ptr_to_int", "tt.reduce", "tt.reshape", "tt.scan",
    "tt.splat", "tt.split", "tt.trans", "tt.unsplat",
    "ttg.convert_layout", "ttg.fp4_to_fp", "ttg.memdesc_index", "ttg.memdesc_reinterpret", "ttg.memdesc_reshape",
    "ttg.memdesc_subslice", "ttg.memdesc_trans", "ttg.predicate_stage", "ttg.warp_id",
    "ttng.clc_get_program_id", "ttng.clc_is_canceled", "ttng.packed_arith", "ttng.reinterpret_tensor_descriptor",
    "ttng.tmem_subslice",
    "tlx.cluster_cta_rank", "tlx.cluster_size", "tlx.local_alias", "tlx.map_to_remote", "tlx.memdesc_dynamic_subslice",
    "tlx.release_layout", "tlx.replica_id", "tlx.require_layout", "tlx.reuse_group", "tlx.stoch_round",
}  # fmt: skip
"""Operations that a pass may merge, move and drop."""

BY_CONTENT = {
    "tt.elementwise_inline_asm", "tt.extern_elementwise", "ttg.inline_asm",  # unless `pure`
    "tt.map_elementwise", "ttg.mask", "ttg.warp_specialize", "ttg.warp_specialize.partitions",  # their regions'
}  # fmt: skip
"""Operations whose effects depend on what they hold."""

UNKNOWN = {"tt.call", "tt.func"}
"""Operations without a statement, which every pass must take for the worst."""

EVERYTHING = [op for dialect in (tt.TT, ttg.TTG, ttng.TTNG, tlx.TLX) for op in dialect.operations]


def blank(op: type[Operation]) -> Operation:
    """An operation of this class without operands, which is all that a fixed effect needs."""
    return op.create()


@pytest.mark.parametrize("op", [op for op in EVERYTHING if op.name not in BY_CONTENT | UNKNOWN], ids=lambda op: op.name)
def test_effects(op):
    if op.name in FREE or op.has_trait(IsTerminator):
        assert is_side_effect_free(blank(op))
    else:
        assert get_effects(blank(op)), "an operation that is not free states an effect"


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_unknown_effects(name):
    (op,) = (op for op in EVERYTHING if op.name == name)
    assert get_effects(blank(op)) is None


@pytest.mark.parametrize(
    "op",
    [
        *(
            op
            for op in nvvm.NVVM.operations
            if op.name not in ("nvvm.mapa", "nvvm.fence.proxy") and ".sreg." not in op.name
        ),
        gpu.BarrierOp,
        llvm.AssumeOp,
    ],
    ids=lambda op: op.name,
)
def test_other_dialects_order_memory(op):
    assert get_effects(blank(op))


@pytest.mark.parametrize("kind", nvvm.ProxyKind)
def test_proxy_fences_order_memory(kind):
    assert get_effects(nvvm.FenceProxyOp.create(properties={"kind": nvvm.ProxyKindAttr(kind)}))


ASSEMBLY = """
tt.func @f(%x: i32) {{
  %0 = tt.elementwise_inline_asm "" {{constraints = "=r,r", packed_element = 1 : i32, pure = {pure}}} %x : i32 -> i32
  tt.return
}}
"""


@pytest.mark.parametrize("pure", [True, False])
def test_assembly_is_as_pure_as_it_says(pure):
    module = parse_module(ASSEMBLY.format(pure=str(pure).lower()))
    (asm,) = (op for op in module.walk() if op.name == "tt.elementwise_inline_asm")
    assert is_side_effect_free(asm) is pure


VOLATILE = """
tt.func @f(%p: !tt.ptr<f32>) {{
  %0 = tt.load %p {{isVolatile = {volatile}}} : !tt.ptr<f32>
  tt.return
}}
"""


@pytest.mark.parametrize("volatile", [True, False])
def test_only_a_volatile_load_counts_as_a_write(volatile):
    module = parse_module(VOLATILE.format(volatile=str(volatile).lower()))
    (load,) = (op for op in module.walk() if op.name == "tt.load")
    assert has_effects(load, MemoryEffectKind.READ)
    assert has_effects(load, MemoryEffectKind.WRITE) is volatile
