"""Miscompilations of single Triton versions: each minimal kernel with and without what is done about it.

The judge is the PTX machine, and numpy on the numbers; where neither shows it, the text of the PTX. The installed
version is tried: a defect that it has must show without the mend, and be cured, refused or warned of with it; one that
it does not have must not show, and nothing may be said or done about it.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from xdsl.passes import ModulePass

import tests.gallery.defects
from tests.unit import volume
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendError, BackendResult, compile_ttgir
from tlx_xdsl.backend.defects import DEFECTS, Defect, cause_of
from tlx_xdsl.backend.mends import mend, mend_scales
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.runtime.simulate import ptx_stage
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics
from tlx_xdsl.transforms import pipelines

SHORT = ("quotient_of_negative", "gather_of_two_ctas", "cp_async_before_wgmma")
"""Two that the newest version has, and one that it does not have."""
_TESTED = [each for each in DEFECTS if volume.is_full_for_each_version() or each.name in SHORT]


class _Nothing(ModulePass):
    name = "nothing"

    def apply(self, ctx: Any, op: Any) -> None:
        """Leave the module as it is."""


@contextmanager
def _compiling(defect: Defect, *, mended: bool) -> Iterator[tuple[list[BackendResult], list[Diagnostic]]]:
    """Run PTX that is made with, or without, what handles a defect; what was compiled, and said meanwhile."""
    results: list[BackendResult] = []
    said: list[Diagnostic] = []
    usual: Callable[..., ModulePass] = pipelines._pass
    compile_usually = ptx_stage.compiled

    def passes(name: str, **options: bool) -> ModulePass:
        return _Nothing() if not mended and name == defect.where else usual(name, **options)

    def compiled(source: Any, specialization: Any, _options: Any) -> BackendResult:
        assert INSTALLED is not None
        with collected_diagnostics() as found:
            text = compile_text(source, specialization, triton_version=INSTALLED, keep_ttir=False)
        said.extend(found)
        options = specialization.backend_options(mends=mended)
        results.append(compile_ttgir(text.ttgir, options, stages="ptx", source_name=f"{text.name}.ttgir"))
        return results[-1]

    pipelines._pass, ptx_stage.compiled = passes, compiled
    try:
        yield results, said
    finally:
        pipelines._pass, ptx_stage.compiled = usual, compile_usually


def _attempt(defect: Defect, *, mended: bool) -> tuple[str, tuple[str, ...], list[BackendResult]]:
    """Run the minimal kernel; what is wrong with it, what is warned of, and what was compiled."""
    kernel = import_module(f"{tests.gallery.defects.__name__}.{defect.name}")
    wrong = ""
    with _compiling(defect, mended=mended) as (results, said):
        try:
            kernel.run(stage="ptx", target=defect.target)
        except BackendError:
            # What stock Triton does not compile at all is no wrong code.
            wrong = ""
        except (CompilationError, AssertionError) as error:
            wrong = str(error) or "wrong numbers"
    if not wrong and results and hasattr(kernel, "shows") and kernel.shows(results[-1].ptx):
        wrong = "the text shows it"
    return wrong, tuple(each.message for each in said if each.severity == "warning"), results


@pytest.mark.backend
@pytest.mark.parametrize("defect", _TESTED, ids=lambda each: each.name)
def test_on_the_installed_version(defect):
    wrong, _, _ = _attempt(defect, mended=False)
    has = INSTALLED in defect.versions
    assert bool(wrong) == has, wrong
    if has and defect.reports:
        assert cause_of(wrong, INSTALLED or "") is not None, wrong
    wrong, said, results = _attempt(defect, mended=True)
    if not has:
        assert (wrong, said) == ("", ())
        assert not any(each.mended for each in results)
    elif defect.handling == "mended":
        assert wrong == ""
        if defect.where.startswith("backend/"):
            assert defect.name in {mended.defect for each in results for mended in each.mended}
    elif defect.handling == "refused":
        assert re.search(rf"{defect.name}\.py:\d+:\d+: error: .*miscompiled by stock Triton", wrong), wrong
    else:
        assert any("has it right" in each for each in said)


def test_every_defect_has_a_kernel_and_a_line_in_the_page():
    folder = Path(tests.gallery.defects.__path__[0])
    assert {each.stem for each in folder.glob("[a-z]*.py")} == {each.name for each in DEFECTS}
    page = (Path(__file__).parents[3] / "docs" / "miscompilations.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [_row(each) for each in DEFECTS]


def _row(defect: Defect) -> str:
    """The line of the page."""
    links = ", ".join(
        f"[{each.removeprefix('triton-lang/triton')}](https://github.com/{each.replace('#', '/issues/')})"
        for each in defect.upstream
    )
    versions = ", ".join(defect.versions)
    return (
        f"| `{defect.name}` | {defect.what} | {versions} | {defect.mended_in or 'none'} | {defect.target} | "
        f"{defect.handling}: `{defect.where}` | {links} |"
    )


def test_causes():
    said = "the product takes a register that is written after the last wgmma.fence"
    found = cause_of(said, "3.7.1")
    assert found is not None
    assert found.sentence("3.7.1") == (
        "stock Triton 3.7.1 writes registers of a product after its wgmma.fence (triton-lang/triton#9514, "
        "triton-lang/triton#9530); mended in 3.8.0"
    )
    # 3.6.0 does not have it, and what is unknown has no cause.
    assert cause_of(said, "3.6.0") is None
    assert cause_of("load out of bounds: 4 bytes at byte 240 of 'x', which has 240", "3.7.1") is None
    # Sums of fp32 are another matter than those of fp16, though the machine says the same of them.
    said = "this uses the result of a wgmma that was not waited for\n"
    said += "the other is 'wgmma.mma_async.sync.aligned.m64n64k16.{}'"
    assert cause_of(said.format("f32.f16.f16"), "3.7.1") is None
    found = cause_of(said.format("f16.f16.f16"), "3.7.1")
    assert found is not None
    assert found.name == "half_sums_in_flight"


# --- PTX, cut down by hand --------------------------------------------------------------------------------------------

COPIES = """
$L__BB0_1:
	cp.async.wait_group 	1;
	bar.sync 	0;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2,%r3,%r4}, %rd1, %rd2, %p1, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
	@%p2 bra 	$L__BB0_1;
	cp.async.wait_group 	0;
	bar.sync 	0;
	ret;
"""


def _added(ptx: str, version: str, threads: int = 128) -> list[str]:
    """The lines that a mend adds, each with the one before it."""
    lines = mend(ptx, version, threads=threads)[0].splitlines()
    return [f"{one.split()[0]} > {two.split()[0]}" for one, two in pairwise(lines) if "// added" in two]


def test_a_fence_after_copies_that_a_product_reads():
    # Not after the last wait, from which no product is reached, and on no version that has the fence.
    assert _added(COPIES, "3.6.0") == ["cp.async.wait_group > fence.proxy.async.shared::cta;"]
    assert mend(COPIES, "3.8.0", threads=128) == (COPIES, ())
    fenced = COPIES.replace("wgmma.fence", "fence.proxy.async.shared::cta;\n\twgmma.fence")
    assert _added(fenced, "3.6.0") == []


PRODUCTS = """
	wgmma.fence.sync.aligned;
	mov.b32 	%r9, %r8;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2}, {%r9,%r6}, %rd2, %p1, 1, 1, 0, 0;
	mov.b32 	%r5, {%rs1, %rs2};
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2}, {%r5,%r6}, %rd2, %p1, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 0;
	ret;
"""


def test_a_fence_before_a_product_of_new_registers():
    # %r9 is a copy of what was there at the fence, %r5 is new.
    assert _added(PRODUCTS, "3.7.1") == ["mov.b32 > wgmma.fence.sync.aligned;"]
    assert _added(PRODUCTS.replace("{%rs1, %rs2}", "%r7"), "3.7.1") == []
    assert _added(PRODUCTS, "3.6.0") == []


OVERWRITE = """
	wgmma.wait_group.sync.aligned 0;
	@%p1 bra 	$L__BB0_2;
	st.shared.b32 	[%r1], %r2;
$L__BB0_2:
	bar.sync 	0;
	ret;
"""


def test_a_barrier_before_an_overwrite():
    added = ["wgmma.wait_group.sync.aligned > bar.sync"]
    assert _added(OVERWRITE, "3.8.0", threads=256) == added
    # One warp group needs none, nor is one possible where tasks have parted; a barrier that is there is enough.
    assert _added(OVERWRITE, "3.8.0", threads=128) == []
    assert _added(OVERWRITE, "3.8.0", threads=0) == []
    assert _added(OVERWRITE.replace("@%p1 bra", "bar.sync 0;\n\t@%p1 bra"), "3.8.0", threads=256) == []
    assert _added(OVERWRITE, "3.9.0", threads=256) == []


LEFT = """
$L__BB0_1:
	ld.shared.b32 	%r5, [%r9];
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1,%r2}, {%r5,%r6}, %rd2, %p1, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	@%p2 bra 	$L__BB0_1;
	wgmma.wait_group.sync.aligned 0;
	ret;
"""


def test_a_wait_before_registers_of_a_product_in_flight_are_written():
    assert _added(LEFT, "3.7.1") == ["$L__BB0_1: > wgmma.wait_group.sync.aligned"]
    assert _added(LEFT.replace("@%p2", "wgmma.wait_group.sync.aligned 0;\n\t@%p2"), "3.7.1") == []
    # One group in flight may be another one; with one more commit it is not.
    assert _added(LEFT.replace("@%p2", "wgmma.wait_group.sync.aligned 1;\n\t@%p2"), "3.7.1") != []


STORE = """
	cp.async.bulk.wait_group.read 	0;
	bar.sync 	0;
	atom.global.gpu.release.exch.b32 %r1, [ %rd1 + 0 ], %r2;
	ret;
"""


def test_a_wait_for_the_writes_of_a_store_that_is_released():
    assert _added(STORE, "3.7.1") == ["cp.async.bulk.wait_group.read > cp.async.bulk.wait_group"]
    assert _added(STORE.replace("release", "relaxed"), "3.7.1") == []
    assert _added(STORE, "3.8.0") == []


def test_labels_in_braces():
    """Stock Triton's waits for an mbarrier have labels of their own, all with one name."""
    wait = "\t{\nwaitLoop:\n\tmbarrier.try_wait.parity.shared.b64 done, [%r1], 0;\n\t@!done bra.uni waitLoop;\n\t}\n"
    text = f"{wait}\tcp.async.wait_group 0;\n{wait}\twgmma.mma_async.x {{%r1}}, %rd1;\n\tret;\n"
    assert _added(text, "3.6.0") == ["cp.async.wait_group > fence.proxy.async.shared::cta;"]


SCALES = """\
    %1 = arith.extui %0 : tensor<64x2xi8, #b> to tensor<64x2xi16, #b> loc(#loc1)
    %2 = arith.shli %1, %cst : tensor<64x2xi16, #b> loc(#loc1)
    %3 = tt.bitcast %2 : tensor<64x2xi16, #b> -> tensor<64x2xbf16, #b> loc(#loc1)
"""


def test_scales():
    given = "%4 = tt.dot_scaled ..."
    text, mended = mend_scales(SCALES, given, "3.8.0")
    assert [each.defect for each in mended] == ["scale_of_byte_zero"]
    assert "arith.maxui %2, %least_scale_1 : tensor<64x2xi16, #b>" in text
    assert "tt.bitcast %scale_bits_1 :" in text
    # Not of a newer version, nor of shifts of the kernel's own.
    assert mend_scales(SCALES, given, "3.9.0") == (SCALES, ())
    assert mend_scales(SCALES, "", "3.8.0") == (SCALES, ())
    own = f"{given}\n%5 = tt.bitcast %6 : tensor<4xi16> -> tensor<4xbf16>"
    assert mend_scales(SCALES, own, "3.8.0") == (SCALES, ())


def test_a_long_opcode_that_is_no_release_takes_no_time():
    """A mend asked for the ways to cut it into words, which doubled with each letter."""
    ptx = ".visible .entry kernel()\n{\n\tfence.acquire.sync_restrict::shared::clu;\n\tret;\n}\n"
    begun = time.thread_time()
    assert mend(ptx, "3.6.0", threads=128) == (ptx, ())
    assert time.thread_time() - begun < 0.5
