"""The corpus of texts that stock Triton prints: it holds what it should hold, and stock reads it without a change."""

import re
from collections import Counter

import pytest

pytest.importorskip("triton", reason="stock Triton is not installed")

from tests.corpus.generate import (
    LEVELS,
    CorpusEntry,
    Level,
    cases,
    corpus,
    entry,
    keys,
    skipped,
)
from tests.corpus.stock import Reprinted, StockError, operations, reprint, reprint_in_subprocess
from tests.versions import RELEASE

pytestmark = pytest.mark.backend

ALL_KEYS = [key for level in LEVELS for key in keys(level)]

SINCE_3_7 = {
    "concatenate_in_order",
    "gluon_shared_gather_and_scatter",
    "gluon_tcgen05_multicast",
    "gluon_tensor_memory_reductions",
    "gluon_tma_multicast",
    "gluon_warp_specialized_without_captures",
}
SINCE_3_8 = {
    "expected_zeros",
    "gluon_cluster_barrier",
    "gluon_dynamic_scheduling",
    "gluon_generic_linear_layout",
    "gluon_im2col",
    "gluon_packed_arithmetic",
    "gluon_padded_fp4_in_tensor_memory",
    "gluon_shared_atomics",
    "gluon_store_to_other_cta",
    "gluon_tma_reductions",
}
SINCE_3_9 = {
    "atomic_load_store_poll",
    "gluon_arrive_from_other_cta",
    "gluon_cache_policies",
    "gluon_thread_assembly",
    "matmul_dynamic",
}
SKIPPED = {
    (3, 6): SINCE_3_7 | SINCE_3_8 | SINCE_3_9 | {"gluon_cluster_arrive_and_wait"},
    (3, 7): SINCE_3_8 | SINCE_3_9,
    (3, 8): SINCE_3_9,
    (3, 9): {"block_pointers", "gluon_cluster_arrive_and_wait"},
}
"""What each version of Triton can't express."""

OTHER_DIALECTS = {
    "arith": "addf addi andi ceildivsi cmpf cmpi constant divf divsi divui extf extsi extui fptosi fptoui maximumf "
    "maxnumf maxsi maxui minimumf minnumf minsi minui mulf muli negf ori remf remsi remui select shli shrsi shrui "
    "sitofp subf subi truncf trunci uitofp xori",
    "builtin": "module",
    "cf": "br cond_br",
    "llvm": "intr.assume",
    "math": "absf absi ceil cos erf exp exp2 floor fma log log2 rsqrt sin sqrt",
    "scf": "condition for if while yield",
}
"""Operations of other dialects than Triton's that the corpus has on Triton 3.9."""


def expressible(level: Level) -> list[CorpusEntry]:
    return [entry for entry in corpus(level) if entry.skipped_reason is None]


def test_size():
    assert len(cases()) >= 130
    assert len(expressible("ttir")) >= 85
    assert len(expressible("ttgir")) >= 155


def test_skipped_kernels():
    assert set(skipped()) == SKIPPED[RELEASE]
    for level in LEVELS:
        assert {entry.name for entry in corpus(level) if entry.skipped_reason} <= SKIPPED[RELEASE]


@pytest.mark.parametrize(("name", "level", "arch"), ALL_KEYS, ids=lambda part: str(part))
def test_stock_reads_it_unchanged(name: str, level: Level, arch: int):
    text = entry(name, level, arch)
    if text.skipped_reason:
        pytest.skip(text.skipped_reason)
    assert reprint(text.text) == text.text
    # Locations are there, those of the kernel's source by way of an alias.
    assert re.search(r'^#loc\d* = loc\(".*/tests/gallery/\w+/\w+/\w+\.py":\d+:\d+\)$', text.text, re.MULTILINE)


def test_operations_of_other_dialects():
    found: Counter[str] = Counter()
    for level in LEVELS:
        for text in expressible(level):
            found += operations(text.text)
    expected = {f"{dialect}.{name}" for dialect, names in OTHER_DIALECTS.items() for name in names.split()}
    if RELEASE < (3, 8):
        expected.remove("arith.negf")
    if RELEASE < (3, 7):
        expected.add("gpu.barrier")
    assert {name for name in found if not name.startswith(("tt.", "ttg.", "ttng."))} == expected


GOOD = "module {\n}\n"

REFUSED = {
    "syntax": ("module {", "expected"),
    "type": ("tt.func @f(%a: i32) {\n  %b = arith.addf %a, %a : i32\n  tt.return\n}\n", "floating-point"),
    "operation": ("module {\n  tt.no_such_operation\n}\n", "no_such_operation"),
    "dominance": ("tt.func @f() {\n  %a = arith.addi %b, %b : i32\n  tt.return\n}\n", "undeclared SSA value"),
}

# The verifier expects the layout of wgmma's accumulator, and dies of an assertion.
DEADLY = """\
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func @f(%a: !ttg.memdesc<64x64xf16, #shared, #smem>, %c: tensor<64x64xf32>) {
    %d = ttng.warp_group_dot %a, %a, %c {inputPrecision = 0 : i32} :
        !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32>
    tt.return
  }
}
"""


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_text(text: str, message: str):
    with pytest.raises(StockError, match=message):
        reprint(text)


def test_many_texts_in_another_process():
    """A text that is refused, or that kills the process, harms none of the others."""
    bad, message = REFUSED["type"]
    first, second, third, fourth = reprint_in_subprocess([GOOD, bad, DEADLY, GOOD])
    assert first == fourth == Reprinted(reprint(GOOD))
    assert first.text == 'module {\n} loc(#loc)\n#loc = loc("text.ttgir":1:1)\n'
    assert second.text is None
    assert message in second.error
    assert third.text is None
    assert "Assertion" in third.error


def test_time_limit_in_another_process():
    (answer,) = reprint_in_subprocess([GOOD], timeout=0)
    assert answer.text is None
    assert "more than 0 s" in answer.error
