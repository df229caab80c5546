"""Stock Triton, of whichever version is installed, accepts what storage aliasing makes."""

import pytest
from xdsl.context import Context

from tests.corpus.stock import reprint_in_subprocess
from tests.versions import INSTALLED
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass

LAYOUTS = """
#b16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#b32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#f32 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#f16 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#loose = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 2>
#one = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, colStride = 1>
#half = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
"""

REGIONS = {
    # Storage, arrays, and groups with kind, size and members: the number of an array, or `g` and that of a group.
    "ring": (
        "smem",
        ["6x64x64xf16, #b16", "3x64x256xf16, #b16", "2x64x256xf16, #b16"],
        [("shared", 6, "0"), ("shared", 3, "1"), ("distinct", 1, "g0 g1"), ("shared", 2, "2"), ("shared", 1, "g2 g3")],
    ),
    "odd": ("smem", ["3x64x64xf32, #b32", "3x64xf32, #line"], [("distinct", 1, "0 1")]),
    "no tree": ("smem", ["2x64x64xf32, #b32", "3x64x64xf16, #b16"], []),
    "attention": (
        "tmem",
        ["2x128x128xf32, #f32", "8x128x32xf16, #f16", "2x128x1xf32, #one", "2x128x1xf32, #one", "2x128x1xf32, #one"],
        [("shared", 4, "1"), ("distinct", 1, "g0 2 3 4"), ("shared", 1, "0 g1")],
    ),
    "phases": ("smem", ["2x64x64xf32, #b32", "3x64x64xf16, #b16"], [("shared", 1, "0 1")]),
    "columns": ("tmem", ["3x128x1xf32, #one", "3x128x32xf16, #f16"], [("distinct", 1, "0 1")]),
    "unpacked": ("tmem", ["2x128x32xf16, #loose", "2x128x128xf32, #f32"], [("distinct", 1, "0 1")]),
    "64 rows": ("tmem", ["2x64x64xf32, #half", "4x64x64xf16, #half"], [("shared", 2, "1"), ("shared", 1, "0 g0")]),
    "64 and 128 rows": ("tmem", ["2x64x64xf32, #half", "2x128x1xf32, #one"], [("distinct", 1, "0 1")]),
}


def region(storage: str, arrays: list[str], groups: list[tuple[str, int, str]]) -> str:
    """A function that indexes every array of a region."""
    spec = f"!tlx.storage_alias_spec<{storage}>"
    types = [f"!ttg.memdesc<{array}, #{storage}, mutable>" for array in arrays]
    lines = [f"%s = tlx.storage_alias_spec storage = {storage} : {spec}"]
    lines += [f"%a{n} = tlx.storage_alias_local_alloc %s : {spec} -> {type_}" for n, type_ in enumerate(types)]
    names = {str(n): (f"%a{n}", type_) for n, type_ in enumerate(types)}
    for n, (kind, size, members) in enumerate(groups):
        operands, operand_types = zip(*(names[member] for member in members.split()), strict=True)
        suffix = f", group_size = {size}" if size > 1 else ""
        lines.append(
            f"%g{n} = tlx.reuse_group({', '.join(operands)}) group_kind = {kind}{suffix} : "
            f"({', '.join(operand_types)}) -> !tlx.reuse_group<{kind}>"
        )
        names[f"g{n}"] = (f"%g{n}", f"!tlx.reuse_group<{kind}>")
    for n, type_ in enumerate(types):
        one = type_.replace(f"<{arrays[n].split('x')[0]}x", "<", 1)
        lines.append(f"%b{n} = ttg.memdesc_index %a{n}[%i] : {type_} -> {one}")
        lines.append(f"ttg.local_dealloc %b{n} : {one}" if storage == "smem" else "")
    return "tt.func @f(%i: i32) {\n" + "\n".join(lines) + "\ntt.return\n}\n"


@pytest.mark.backend
def test_stock_triton_accepts_what_is_made():
    version = INSTALLED
    assert version is not None
    profile = profile_for(version)
    texts = []
    for storage, arrays, groups in REGIONS.values():
        module = parse_module(LAYOUTS + region(storage, arrays, groups))
        with collected_diagnostics():
            StorageAliasLoweringPass().apply(Context(), module)
            RewriteLocalAliasPass(whole_views=profile.views_fill_allocations).apply(Context(), module)
        verify_module(module)
        texts.append(print_module(module, profile=profile))
        assert "memdesc_reinterpret" in texts[-1]
    for name, text, answer in zip(REGIONS, texts, reprint_in_subprocess(texts), strict=True):
        assert answer.text is not None, f"{name}: {answer.error}\n{text}"
