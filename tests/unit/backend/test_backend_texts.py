"""The parts that only read texts and check values: no Triton needed."""

import os
import threading
import time

import pytest

from tlx_xdsl.backend import BackendOptions, BackendWarning, KernelMetadata, KernelResources, OutOfResourcesError
from tlx_xdsl.backend.diagnosis import Finding, diagnose, find_reason, find_warnings, how_it_ended
from tlx_xdsl.backend.limits import check_resources
from tlx_xdsl.backend.protocol import receive, send
from tlx_xdsl.backend.ptxas import parse_error, parse_resources, parse_warnings
from tlx_xdsl.backend.stock_passes import stock_passes
from tlx_xdsl.errors import SourceLocation

pytestmark = pytest.mark.quick

HOPPER = BackendOptions()
BLACKWELL = BackendOptions(target="sm_100a")

LOSS = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient registers"

PTXAS_LOG = f"""\
ptxas info    : (C7510) {LOSS}
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
    160 bytes stack frame, 240 bytes spill stores, 320 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 160 bytes cumulative stack size
ptxas info    : Compile time = 252.000 ms
"""


class TestPtxas:
    def test_resources(self):
        assert parse_resources(PTXAS_LOG) == KernelResources(
            registers=168, spill_store_bytes=240, spill_load_bytes=320, stack_bytes=160, barriers=9
        )
        older = "ptxas info    : Used 40 registers, 1024 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]\n"
        assert parse_resources(older) == KernelResources(registers=40, static_shared_bytes=1024, constant_bytes=408)

    def test_an_empty_log_has_none(self):
        assert parse_resources("") == KernelResources()

    def test_a_performance_loss_is_a_warning_though_ptxas_calls_it_info(self):
        ptx = """\
.file 1 "k.py"
.visible .entry gemm(
)
{
	.loc	1 9 3
	wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {a}, b, c;
	wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {a}, b, c;
	.loc	1 5 7
	wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {a}, b, c;
"""
        (warning,) = parse_warnings(PTXAS_LOG + PTXAS_LOG, ptx)
        assert warning.text == f"C7510: {LOSS}"
        assert warning.location == SourceLocation("k.py", 5, 7)
        assert warning.notes == ("k.py:9:3: another wgmma of this kernel",)
        assert str(warning).startswith("k.py:5:7: warning: C7510: ")
        assert parse_warnings(PTXAS_LOG, "")[0].location is None
        injected = "ptxas info    : (C7517) warpgroup.wait is injected in around line 7 by compiler"
        assert parse_warnings(injected, ptx)[0].location == SourceLocation("k.py", 9, 3)

    def test_warnings_of_either_tool_with_and_without_a_place(self):
        log = """\
ptxas-blackwell warning : Value of threads per SM is out of range
ptxas /tmp/a.ptx, line 7; warning : (C7519) Unused label
ptxas-blackwell warning : Too many maxnreg specified for entry k, will be ignored
"""
        range_, label = parse_warnings(log, self.PTX)
        assert (range_.text, range_.location) == ("Value of threads per SM is out of range", None)
        assert (label.text, label.location) == (
            "C7519: Unused label",
            SourceLocation("/home/user/helper.py", 5, 11),
        )

    PTX = """\
.visible .entry add(
)
{
	.loc	1 1 0
	mov.u32 %r1, 0;
	.loc	2 5 11, function_name $L__info_string0, inlined_at 1 2 3
	bad.instruction %r1;
}
.visible .entry other(
)
{
	bad.instruction %r1;
	.file	1 "user.py"
	.file	2 "/home/user" "helper.py"
"""

    def test_an_error_is_traced_to_its_source(self):
        log = "ptxas-blackwell /tmp/a.ptx, line 7; error   : Not a name of any known instruction: 'bad'\n"
        message, location = parse_error(log, self.PTX) or ("", None)
        assert message == "Not a name of any known instruction: 'bad'"
        assert location == SourceLocation("/home/user/helper.py", 5, 11)

    def test_the_location_of_another_function_is_not_taken(self):
        log = "ptxas /tmp/a.ptx, line 12; error   : Not a name of any known instruction: 'bad'\n"
        assert parse_error(log, self.PTX) == ("Not a name of any known instruction: 'bad'", None)

    def test_a_fatal_error_has_no_line(self):
        log = "ptxas fatal   : Value 'sm_42' is not defined for option 'gpu-name'\n"
        assert parse_error(log, "") == ("Value 'sm_42' is not defined for option 'gpu-name'", None)
        assert parse_error("ptxas info    : all is well\n", "") is None


class TestDiagnosis:
    @pytest.mark.parametrize(
        ("log", "finding"),
        [
            ('loc("user.py":3:4): error: wrong', Finding("wrong", SourceLocation("user.py", 3, 4))),
            ("a b\nuser.py:3:4: error: wrong", Finding("wrong", SourceLocation("user.py", 3, 4))),
            (
                'loc(callsite("f"("in.py":3:4) at fused["out.py":5:6, "b.py":1:1])): error: wrong',
                Finding("wrong", SourceLocation("in.py", 3, 4)),
            ),
            (
                'loc("u.py":1:2): error: Invalid layout: #x.\nLayout has 4 warps, but 8 are required.\n',
                Finding(
                    "Invalid layout: #x. Layout has 4 warps, but 8 are required.",
                    SourceLocation("u.py", 1, 2),
                ),
            ),
            (
                'python: /src/lib/Alias.cpp:47: void f(int): Assertion `x && "why"\' failed.\n#a = 1',
                Finding('assertion `x && "why"` failed (Alias.cpp:47)'),
            ),
            (
                "cantFail\nwrong count\nUNREACHABLE executed at /llvm/Error.h:779!",
                Finding("wrong count (Error.h:779)"),
            ),
            ("LLVM ERROR: out of registers", Finding("out of registers")),
            ("error: no register for 'Q'", Finding("no register for 'Q'")),
            (
                "k:2:1: error: Failures have been detected while processing an MLIR pass pipeline\n"
                "k:2:1: note: Pipeline failed while executing [`Convert` on 'builtin.module' operation]",
                Finding("the pass Convert failed without saying why"),
            ),
            ("all is well", None),
        ],
    )
    def test_reasons(self, log: str, finding: Finding | None):
        assert find_reason(log) == finding

    def test_a_located_reason_goes_before_the_crash_that_follows_it(self):
        log = 'python: a.cpp:1: f: Assertion `x\' failed.\nloc("user.py":3:4): error: wrong\n'
        assert find_reason(log) == Finding("wrong", SourceLocation("user.py", 3, 4))

    def test_without_any_reason_the_last_words_count(self):
        error = diagnose("one\ntwo\n", stage="llir", death="died of SIGSEGV", triton_version="3.9.0")
        assert error.message == "the stock Triton process died of SIGSEGV: two"
        assert error.notes == ("stock Triton 3.9.0 failed in stage 'llir'",)

    def test_warnings(self):
        assert find_warnings('loc("u.py":1:2): warning: slow\nwarning: slow\nfine\n') == (
            BackendWarning("slow", SourceLocation("u.py", 1, 2)),
            BackendWarning("slow"),
        )

    def test_how_a_process_ended(self):
        assert how_it_ended(1) == "exited with code 1"
        assert how_it_ended(-6) == "died of SIGABRT"
        assert how_it_ended(-9) == "died of SIGKILL (out of memory?)"


class TestOptions:
    @pytest.mark.parametrize(
        ("target", "capability"),
        [("sm_80", 80), ("sm_90", 90), ("sm_90a", 90), ("sm_100a", 100), ("sm_103", 103)],
    )
    def test_capability(self, target: str, capability: int):
        assert BackendOptions(target=target).capability == capability

    @pytest.mark.parametrize(
        "keywords",
        [
            {"target": "cuda:90"},
            {"target": "sm_75"},
            {"num_warps": 6},
            {"num_warps": 0},
            {"num_ctas": 0},
            {"maxnreg": 256},
        ],
    )
    def test_what_is_refused(self, keywords):
        (name,) = keywords
        with pytest.raises(ValueError, match=name):
            BackendOptions(**keywords)


class TestLimits:
    def test_the_limit_itself_is_allowed(self):
        check_resources(KernelMetadata(shared=232448, tmem_size=512, num_warps=32), BLACKWELL, "")
        with pytest.raises(OutOfResourcesError):
            check_resources(KernelMetadata(shared=232449), HOPPER, "")

    def test_smaller_devices_have_less(self):
        with pytest.raises(OutOfResourcesError, match="101376"):
            check_resources(KernelMetadata(shared=101377), BackendOptions(target="sm_86"), "")

    def test_there_is_no_tensor_memory_on_hopper(self):
        with pytest.raises(OutOfResourcesError, match="64 columns of tensor memory, but a CTA on sm_90a has at most 0"):
            check_resources(KernelMetadata(tmem_size=64), HOPPER, "")

    TTGIR = """\
#loc = loc("k.py":1:1)
module attributes {"ttg.maxnreg" = 168 : i32} {
  tt.func public @k() {
    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #shared, #smem, mutable> loc(#loc1)
    %b = ttg.local_alloc : () -> !ttg.memdesc<4x64x128xf32, #shared, #smem, mutable> loc(#loc3)
    %c = ttng.tmem_alloc : () -> !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> loc(#loc1)
    ttg.warp_specialize()
  } loc(#loc)
}
#loc1 = loc("k.py":5:7)
#loc2 = loc("k.py":9:3)
#loc3 = loc("b"(#loc2))
"""

    def test_the_largest_buffers_are_named(self):
        with pytest.raises(OutOfResourcesError) as info:
            check_resources(KernelMetadata(shared=300000), HOPPER, self.TTGIR)
        assert info.value.location == SourceLocation("k.py", 9, 3)
        assert info.value.notes == (
            "131072 bytes: 4x64x128xf32 at k.py:9:3",
            "32768 bytes: 2x64x128xf16 at k.py:5:7",
        )

    @pytest.mark.parametrize(("warps", "fits"), [(8, True), (12, True), (16, False)])
    def test_registers_of_a_kernel_whose_tasks_trade_them(self, warps: int, fits: bool):
        metadata = KernelMetadata(num_warps=warps)
        check_resources(metadata, HOPPER, self.TTGIR.replace("ttg.warp_specialize", "ttg.other"))
        if fits:
            check_resources(metadata, HOPPER, self.TTGIR)
            return
        with pytest.raises(OutOfResourcesError, match="maxnreg can be at most 128") as info:
            check_resources(metadata, HOPPER, self.TTGIR)
        assert (info.value.resource, info.value.required, info.value.limit) == ("registers", 86016, 65536)

    def test_threads(self):
        with pytest.raises(OutOfResourcesError, match=r"1152 threads in 36 warps \(4 of num_warps, 32 of its tasks\)"):
            check_resources(KernelMetadata(num_warps=36), HOPPER, "")


class TestPassList:
    def test_nothing_that_moves_or_adds_synchronisation(self):
        for capability in (80, 90, 100):
            names = {stock_pass.name for stock_pass in stock_passes(capability, "")}
            assert not names & {
                "reorder_instructions",
                "pipeline",
                "hopper_warpspec",
                "warp_specialize",
                "prefetch",
            }

    def test_the_accumulator_of_a_dot_is_hoisted_where_a_dot_has_tensor_memory(self):
        def added(capability: int) -> set[str]:
            with_dot, without = (stock_passes(capability, text) for text in ("tt.dot", ""))
            return {stock_pass.name for stock_pass in with_dot} - {stock_pass.name for stock_pass in without}

        assert added(90) == set()
        assert added(100) == {"hoist_tmem_alloc", "remove_tmem_tokens"}

    def test_every_pass_has_a_reason(self):
        assert all(stock_pass.why for stock_pass in stock_passes(100, ""))

    def test_tma_and_launch_control_only_where_the_device_has_them(self):
        names = [[stock_pass.name for stock_pass in stock_passes(c, "")] for c in (80, 90, 100)]
        assert ["tma_lowering" in n for n in names] == [False, True, True]
        assert ["lower_clc" in n for n in names] == [False, False, True]


class TestProtocol:
    def test_a_frame_larger_than_a_pipe_s_buffer_arrives_whole(self):
        reading, writing = os.pipe()
        sender = threading.Thread(target=send, args=(writing, b"x" * 1_000_000))
        sender.start()
        assert receive(reading, time.monotonic() + 30) == b"x" * 1_000_000
        sender.join()
        os.close(reading)
        os.close(writing)

    def test_a_closed_pipe_ends_the_conversation(self):
        reading, writing = os.pipe()
        os.write(writing, b"half")
        os.close(writing)
        with pytest.raises(EOFError):
            receive(reading)
        os.close(reading)

    def test_nothing_arrives_before_the_deadline(self):
        reading, writing = os.pipe()
        with pytest.raises(TimeoutError):
            receive(reading, time.monotonic() + 0.01)
        os.close(reading)
        os.close(writing)
