"""The static rule about dots in flight against the interpreter, which sees what one execution does."""

# covers: tlx-check-dots-in-flight

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.unit.volume import is_full
from tlx_xdsl.analysis.dots_in_flight import check_dots_in_flight
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.simulate.interpret import interpret_text
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

TEXTS = Path(__file__).parents[1] / "interpreter" / "texts"

HEAD = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#acc = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 16]}>
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#smem = #ttg.shared_memory
!a = !ttg.memdesc<64x16xf16, #shared, #smem, mutable>
!b = !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @kernel(%p: i1) {
    %va = arith.constant dense<1.0> : tensor<64x16xf16, #b>
    %vb = arith.constant dense<1.0> : tensor<16x16xf16, #b>
    %a = ttg.local_alloc %va : (tensor<64x16xf16, #b>) -> !a
    %b = ttg.local_alloc %vb : (tensor<16x16xf16, #b>) -> !b
    ttng.fence_async_shared {bCluster = false}
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %v0 = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    %v1 = arith.constant dense<1.0> : tensor<64x16xf32, #acc>
"""
END = "    tt.return\n  }\n}\n"
TENSOR = "tensor<64x16xf32, #acc>"


class Program:
    """Statements over tensors, drawn one by one."""

    def __init__(self, draw, *, nested):
        self.draw = draw
        self.nested = nested
        self.lines = []
        self.values = ["%v0", "%v1"]
        self.count = 1

    def fresh(self):
        # What was made in an inner region is no longer in `values`, but its name stays taken.
        self.count += 1
        return f"%v{self.count}"

    def pick(self):
        return self.draw(st.sampled_from(self.values[-4:]))

    def statement(self, depth):
        kinds = [*[self.dot] * 3, *[self.wait] * 3, self.use]
        if self.nested and depth < 2:
            kinds += [self.loop, self.branch]
        self.draw(st.sampled_from(kinds))(depth)

    def dot(self, _depth):
        c, d = self.pick(), self.fresh()
        mode = self.draw(st.sampled_from(["true", "true", "true", "false"]))
        self.lines.append(f"{d} = ttng.warp_group_dot %a, %b, {c} {{isAsync = {mode}}} : !a * !b -> {TENSOR}")
        self.values.append(d)

    def wait(self, _depth):
        inputs = sorted({self.pick(), self.pick()})
        pendings = self.draw(st.integers(0, 2))
        outputs = [self.fresh() for _ in inputs]
        types = ", ".join(TENSOR for _ in inputs)
        lhs = outputs[0] if len(outputs) == 1 else f"{', '.join(outputs)}"
        self.lines.append(
            f"{lhs} = ttng.warp_group_dot_wait {', '.join(inputs)} {{pendings = {pendings} : i32}} : {types}"
        )
        self.values.extend(outputs)

    def use(self, _depth):
        result = self.fresh()
        self.lines.append(f"{result} = arith.negf {self.pick()} : {TENSOR}")
        self.values.append(result)

    def region(self, depth):
        outer = list(self.values)
        for _ in range(self.draw(st.integers(1, 4))):
            self.statement(depth + 1)
        self.lines.append(f"scf.yield {self.pick()} : {TENSOR}")
        self.values = outer

    def loop(self, depth):
        result, argument = self.fresh(), self.fresh()
        self.lines.append(
            f"{result} = scf.for %i{result[1:]} = %c0 to %c3 step %c1 iter_args({argument} = {self.pick()}) "
            f"-> ({TENSOR}) : i32 {{"
        )
        outer = list(self.values)
        self.values.append(argument)
        self.region(depth)
        self.lines.append("}")
        self.values = [*outer, result]

    def branch(self, depth):
        result = self.fresh()
        self.lines.append(f"{result} = scf.if %p -> ({TENSOR}) {{")
        self.region(depth)
        self.lines.append("} else {")
        self.region(depth)
        self.lines.append("}")
        self.values.append(result)


@st.composite
def programs(draw, *, nested):
    program = Program(draw, nested=nested)
    for _ in range(draw(st.integers(2, 8))):
        program.statement(0)
    return HEAD + "".join(f"    {line}\n" for line in program.lines) + END


def early_uses(text):
    module = parse_module(text)
    verify_module(module)
    found = []
    for function in module.ops:
        check_dots_in_flight(function, found.append)
    return found


def faults(text, taken):
    """Return whether the interpreter finds a use in flight."""
    try:
        interpret_text(text, (1,), [taken])
    except Fault as fault:
        if "asynchronous dot that was not waited for" not in str(fault):
            raise
        return True
    return False


quickly = settings(
    max_examples=1000 if is_full() else 60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)


@quickly
@given(programs(nested=False))
def test_straight_programs_are_refused_exactly_when_they_fault(text):
    assert bool(early_uses(text)) == faults(text, True)


@quickly
@given(programs(nested=True), st.booleans())
def test_what_faults_is_refused(text, taken):
    if faults(text, taken):
        assert early_uses(text)


@pytest.mark.parametrize("path", sorted(TEXTS.glob("*.ttgir")), ids=lambda path: path.stem)
def test_measured_kernels_pass(path):
    """Kernels that run right on a GPU pass; ring buffers, ping-pong and overlapping dots are among them."""
    assert not early_uses(path.read_text())
