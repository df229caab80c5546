"""Sweeps: the verdicts, what is compiled once, and what the death of a process costs."""

import hashlib
import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
import sweep_kernels as kernels

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.backend import BackendOptions, BackendResult, KernelMetadata, KernelResources
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime import compile_many, sweep_jobs
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.runtime.sweep import Job, JobResult, SweepReport, scheduler
from tlx_xdsl.runtime.sweep.jobs import expanded
from tlx_xdsl.runtime.sweep.kernels import KernelReference, UnreachableKernelError, reference_to, resolve
from tlx_xdsl.runtime.sweep.report import judged
from tlx_xdsl.runtime.sweep.steps import Compiled, Lowered

BASE = Specialization({"x": "*i32"})
DIES = "mov.b32 $0, $7;"
MOVES = "mov.b32 $0, $1;"
needs_triton = pytest.mark.backend


def jobs_of(kernel, **choices):
    return sweep_jobs(kernel, BASE, choices)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


class TestJobs:
    def test_all_combinations_the_last_varying_fastest(self):
        jobs = sweep_jobs(kernels.add_one, BASE, {"BLOCK": (64, 128), "num_warps": (4, 8), "num_stages": (2,)})
        found = [(job.settings["BLOCK"], job.specialization.num_warps, job.num_stages) for job in jobs]
        assert found == [(64, 4, 2), (64, 8, 2), (128, 4, 2), (128, 8, 2)]

    def test_a_name_that_is_no_choice(self):
        with pytest.raises(CompilationError, match=r"'BLOKC' can't be chosen: expected .*BLOCK, UNUSED.*num_warps"):
            sweep_jobs(kernels.add_one, BASE, {"BLOKC": (64,)})

    def test_types_follow_the_arguments(self):
        base = Specialization(
            {"x": "tensordesc<fp16[{M // 2}, {N*2 + 1 - 1}]>", "y": ("*fp16", "tensordesc<fp16[{N}]>")}
        )
        assert [expanded(type_, {"M": 128, "N": 32}) for type_ in base.signature.values()] == [
            "tensordesc<fp16[64, 64]>",
            ("*fp16", "tensordesc<fp16[32]>"),
        ]

    @pytest.mark.parametrize("text", ["{M / 2}", "{K}", "{f(M)}", "{}", "{M // 0}", "{NAME}"])
    def test_a_type_that_can_t_be_computed(self, text):
        with pytest.raises(CompilationError, match=r"expected whole numbers, compile-time arguments \(M\)"):
            expanded(text, {"M": 128, "NAME": "fp16"})


class TestKernelsElsewhere:
    def test_a_kernel_is_found_by_its_name(self):
        reference = reference_to(kernels.add_one.source)
        assert resolve(reference).fn is kernels.add_one.source.fn

    def test_a_file_that_is_no_module_is_run(self, tmp_path):
        path = tmp_path / "elsewhere.py"
        path.write_text("import tlx_xdsl\n@tlx_xdsl.jit\ndef k(x):\n    pass\n")
        reference = _reference(path)
        assert resolve(reference).name == "k"
        path.write_text(path.read_text() + "\n")
        with pytest.raises(UnreachableKernelError, match="has changed"):
            resolve(reference)
        path.unlink()
        with pytest.raises(UnreachableKernelError, match="there is no"):
            resolve(reference)

    def test_a_file_that_fails_there(self, tmp_path):
        path = tmp_path / "fails.py"
        path.write_text("raise SystemExit('not here')\n")
        with pytest.raises(UnreachableKernelError, match="ends with SystemExit: not here"):
            resolve(_reference(path))

    def test_a_file_that_starts_a_sweep(self, tmp_path):
        path = tmp_path / "unguarded.py"
        path.write_text("from tlx_xdsl.runtime import compile_many\ncompile_many([])\n")
        with pytest.raises(UnreachableKernelError, match="starts a sweep when it is imported"):
            resolve(_reference(path))

    def test_a_kernel_inside_a_function(self):
        @tlx_xdsl.jit
        def local(x):
            pass

        with pytest.raises(UnreachableKernelError, match="inside another function"):
            reference_to(local.source)


def _reference(path):
    return KernelReference(path.stem, "k", str(path), hashlib.sha256(path.read_bytes()).hexdigest())


@needs_triton
class TestVerdicts:
    def test_each_in_plain_words_and_in_order(self, threads):
        jobs = [
            *jobs_of(kernels.add_one, BLOCK=(128, 100), UNUSED=(1,)),
            *jobs_of(kernels.assembly, TEXT=(DIES, MOVES, "no.such $0, $1;")),
            *jobs_of(kernels.staged, ROWS=(64,), ARRAYS=(16, 14)),
            *jobs_of(kernels.tasks, WARPS=(4, 16)),
            *sweep_jobs(kernels.tasks, BASE, {"WARPS": (4,), "maxnreg": (64, 248)}),
        ]
        reported = []
        report = compile_many(
            jobs, threads, progress=lambda done, total, result: reported.append((done, total, result.kind))
        )
        assert [result.job for result in report] == jobs
        expected = [
            ("fits", r"fits \(\d+ registers, 0 spills, 0 B shared, [\d,]+ ms\)"),
            ("error", r"error: .*sweep_kernels.py:12:\d+: tl.arange: .* power of two of elements, found 100"),
            ("died", r"died: .*sweep_kernels.py:\d+:1: the stock Triton process .*Invalid \$ operand number"),
            ("fits", r"fits \(.*"),
            ("error", r"error: .*sweep_kernels.py:\d+:\d+: ptxas: "),
            (
                "pruned",
                r"pruned: 'staged' needs 262,144 B of shared memory, sm_90a has 232,448: 262,144 B: last, 16 buffers",
            ),
            # Each of the arrays would fit alone, which is all that we know.
            ("pruned", r"pruned: the kernel needs 245760 bytes of shared memory, but a CTA on sm_90a has .* 232448"),
            ("fits", r"fits \(.*"),
            ("pruned", r"pruned: the kernel needs 1,152 threads \(4 warps of num_warps, 16 \+ 16 of its tasks\)"),
            ("fits", r"fits \(.*"),
            (
                "pruned",
                r"pruned: the kernel needs 95,232 registers \(384 threads, .* of maxnreg = 248\), .* at most 168",
            ),
        ]
        assert [(result.kind, result.text) for result in report] == [
            (kind, _Like(pattern)) for kind, pattern in expected
        ]
        assert sorted(reported)[-1][:2] == (len(jobs), len(jobs))
        assert [done for done, _, _ in reported] == [*range(1, len(jobs) + 1)]
        assert report[0].result.cubin
        assert report[0].result.ptx == ""
        assert "note:" in str(report[5].error)
        assert report.of("fits") == tuple(result for result in report if result.is_launchable)
        assert report.best(lambda result: -result.job.specialization.num_warps).kind == "fits"

    def test_one_text_is_compiled_once(self, threads, monkeypatch):
        texts = []
        compile_lowered = scheduler.compile_lowered
        monkeypatch.setattr(
            scheduler,
            "compile_lowered",
            lambda lowered, request: texts.append(lowered.ttgir) or compile_lowered(lowered, request),
        )
        jobs = jobs_of(kernels.add_one, BLOCK=(64, 128), UNUSED=(1, 2, 3))
        report = compile_many(jobs, threads, workers=3)
        assert len(texts) == len(set(texts)) == 2
        assert [result.kind for result in report] == ["fits"] * 6
        assert sum(result.same_as is None for result in report) == 2
        for result in report:
            if result.same_as is not None:
                assert result.result is report[result.same_as].result
                assert f"as configuration {result.same_as}" in result.text
        assert "4 with the text of another one" in report.summary

    def test_without_pruning_all_is_compiled(self, threads):
        report = compile_many(jobs_of(kernels.staged, ROWS=(64,), ARRAYS=(14, 16)), threads, prune=False, keep="all")
        assert [result.kind for result in report] == ["does not fit"] * 2
        assert all(".visible .entry" in result.result.ptx for result in report)
        assert "needs 278528 bytes" in report[1].text
        assert report.best() is None

    def test_a_time_limit(self, threads):
        (result,) = compile_many(jobs_of(kernels.add_one, BLOCK=(64,), UNUSED=(1,)), threads, timeout_s=1e-3)
        assert (result.kind, result.text) == ("timeout", _Like("timeout: .*did not end within 0.001 s"))

    def test_what_only_this_process_knows_is_lowered_here(self, threads):
        @tlx_xdsl.jit
        def local(x, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(x + at, tl.load(x + at) * 3)

        report = compile_many(sweep_jobs(local, BASE, {"BLOCK": (64, 100)}), threads)
        assert [result.kind for result in report] == ["fits", "error"]
        (note,) = report.notes
        assert note.startswith("'local' was lowered in this process, one configuration after the other: it is defined")

    def test_arguments_that_can_t_be_sent(self, threads):
        jobs = jobs_of(kernels.add_one, BLOCK=(64,), UNUSED=(lambda: 1,))
        report = compile_many(jobs, threads)
        assert "its arguments can't be sent" in report.notes[0]
        assert report[0].kind == "fits"


@needs_triton
class TestProcesses:
    """One pool for several things: it takes seconds to start."""

    def test_a_process_that_dies_costs_one_verdict(self):
        jobs = [
            *jobs_of(kernels.add_one, BLOCK=(64,), UNUSED=(1,)),
            *jobs_of(kernels.deadly, NUMBER=(0, 1), HOME=(os.getpid(),)),
            *jobs_of(kernels.assembly, TEXT=(DIES,)),
            *jobs_of(kernels.add_one, BLOCK=(128, 100), UNUSED=(1,)),
        ]
        report = compile_many(jobs, workers=1)
        assert [result.kind for result in report] == ["fits", "died", "fits", "died", "fits", "error"]
        assert report[1].text == "died: the process that worked on it ended"
        assert "stock Triton process" in report[3].text
        assert (report.workers, report.notes) == (1, ())

    def test_in_an_executor_of_the_caller_s_a_death_ends_what_was_left(self):
        jobs = jobs_of(kernels.deadly, NUMBER=(0, 1), HOME=(os.getpid(),))
        report = compile_many(jobs, _Breaking(), workers=1)
        assert [result.text for result in report] == [
            "died: a process of the executor ended, and with it the executor"
        ] * 2

    def test_what_an_executor_raises_is_a_verdict(self):
        (result,) = compile_many(jobs_of(kernels.add_one, BLOCK=(64,), UNUSED=(1,)), _Breaking(OSError("lost\nit")))
        assert result.text == "died: OSError: lost it"


class _Breaking:
    """An executor all of whose futures fail."""

    def __init__(self, error=None):
        self.error = error or BrokenProcessPool("a child has ended")

    def submit(self, function, *arguments):
        future = Future()
        future.set_exception(self.error)
        return future


class TestReport:
    def test_without_jobs(self):
        report = SweepReport((), 0.0, None)
        assert (len(report), report.best(), report.table()) == (0, None, "#  verdict\n0 configurations: none; 0.0 s")

    def test_a_table_shows_what_differs(self):
        report = SweepReport((_result(64), _result(128, spilled=24)), 2.0, 1)
        assert report.table().splitlines() == [
            "#  BLOCK  verdict",
            "0     64  fits (32 registers, 0 spills, 1,024 B shared, 500 ms)",
            "1    128  spills 24 B (32 registers, 1,024 B shared, 500 ms)",
            "2 configurations: 1 fits, 1 spills; 2.0 s on 1 worker",
        ]
        assert "<td>128</td>" in report._repr_html_()
        assert report.best() is report[0]
        assert report[:1] == (report[0],)
        assert SweepReport((report[0],), 2.0, 2).summary == "1 configuration: 1 fits; 2.0 s on 2 workers"


def _result(block, spilled=0) -> JobResult:
    job = Job(kernels.add_one, Specialization({"x": "*i32"}, {"BLOCK": block, "UNUSED": 1}))
    resources = KernelResources(registers=32, spill_store_bytes=spilled)
    result = BackendResult("cubin", "3.9.0", "", metadata=KernelMetadata("k", 1024, 4), resources=resources)
    lowered = Lowered("k", "", BackendOptions(), 0.0)
    return judged(job, 0.5, Compiled(result, 0.4), lowered, None)


class _Like:
    """Equal to a text that a pattern matches."""

    def __init__(self, pattern):
        self.pattern = pattern

    def __eq__(self, other):
        return re.match(self.pattern, other) is not None

    def __repr__(self):
        return f"like {self.pattern!r}"
