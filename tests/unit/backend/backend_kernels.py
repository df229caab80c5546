"""Small TTGIR texts for these tests, in the spelling of the installed Triton."""

import pytest

from tests.versions import RELEASE

needs_triton = pytest.mark.backend

_MODULE = """\
#block = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>
#tile = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [4, 8],
                      warpsPerCTA = [4, 1], order = [1, 0]}}>
#rows = #ttg.blocked<{{sizePerThread = [1, 64], threadsPerWarp = [32, 1],
                      warpsPerCTA = [4, 1], order = [0, 1]}}>
#flat = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#swizzled = #ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
!pointers = tensor<128x!tt.ptr<f32>, #block>
!operand = !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32,
                   ttg.target = "cuda:{capability}", "ttg.threads-per-warp" = 32 : i32}} {{
{function}
}}
"""


def module(function: str, capability: int = 90) -> str:
    """Wrap a function into a module with the attributes and layouts of these tests."""
    return _MODULE.format(function=function, capability=capability)


VECTOR_ADD_BODY = """\
    %index = tt.make_range {{start = 0 : i32, end = 128 : i32}} : tensor<128xi32, #block> loc("user.py":2:5)
    %px = tt.splat %x : !tt.ptr<f32> -> !pointers loc("user.py":3:5)
    %py = tt.splat %y : !tt.ptr<f32> -> !pointers loc("user.py":3:5)
    %ax = tt.addptr %px, %index : !pointers, tensor<128xi32, #block> loc("user.py":3:5)
    %ay = tt.addptr %py, %index : !pointers, tensor<128xi32, #block> loc("user.py":3:5)
    %vx = tt.load %ax : !pointers loc("user.py":4:9)
    %vy = tt.load %ay : !pointers loc("user.py":4:9)
{compute}
    tt.store %ay, %sum : !pointers loc("user.py":6:5)
    tt.return loc("user.py":6:5)
"""

ADD = '    %sum = arith.addf %vx, %vy : tensor<128xf32, #block> loc("user.py":5:11)'


def elementwise(compute: str = ADD) -> str:
    """The module of a kernel y[i] = f(x[i], y[i]) in user.py; `compute` defines %sum from %vx and %vy."""
    body = VECTOR_ADD_BODY.format(compute=compute)
    head = "  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, "
    return module(f'{head}%y: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{\n{body}  }} loc("user.py":1:1)')


VECTOR_ADD = elementwise()


def inline_asm(instruction: str, constraints: str) -> str:
    """The same kernel with one instruction of inline assembly on each element."""
    attributes = f'{{constraints = "{constraints}", packed_element = 1 : i32, pure = false}}'
    return elementwise(f"""\
    %sum = tt.elementwise_inline_asm "{instruction} $0, $1;" {attributes}
        %vx : tensor<128xf32, #block> -> tensor<128xf32, #block> loc("user.py":5:11)""")


def tma_copy() -> str:
    """A warp-specialised kernel: one warp fetches a tile by TMA, the default warps store it."""
    old = RELEASE < (3, 8)
    descriptor = f"!tt.tensordesc<{'tensor<64x64xf16, #swizzled>' if old else '64x64xf16, #swizzled'}>"
    tile = "!ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>"
    bar = "!ttg.memdesc<1xi64, #flat, #smem, mutable>"
    return module(f"""\
  tt.func public @copy(%source: {descriptor}, %out: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}) {{
    %buffer = ttg.local_alloc : () -> {tile}
    %full = ttg.local_alloc : () -> {bar}
    ttng.init_barrier %full, 1 : {bar}
    ttg.warp_specialize(%source, %buffer, %full)
    default {{
      %zero = arith.constant 0 : i32
      %yes = arith.constant true
      ttng.wait_barrier %full, %zero, %yes : {bar}
      %value = ttg.local_load %buffer : {tile} -> tensor<64x64xf16, #tile>
      %p = tt.splat %out : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #tile>
      tt.store %p, %value : tensor<64x64x!tt.ptr<f16>, #tile>
      ttg.warp_yield
    }}
    partition0(%s: {descriptor}, %b: {tile}, %f: {bar}) num_warps(1) {{
      %origin = arith.constant 0 : i32
      %always = arith.constant true
      ttng.barrier_expect %f, 8192, %always : {bar}
      ttng.async_tma_copy_global_to_local %s[%origin, %origin] %b, %f, %always : {descriptor}, {bar} -> {tile}
      ttg.warp_return
    }} : ({descriptor}, {tile}, {bar}) -> ()
    ttng.inval_barrier %full : {bar}
    tt.return
  }}""")


SHARED_TOO_LARGE = module("""\
  tt.func public @large(%out: !tt.ptr<f32>) {
    %zero = arith.constant 0 : i32
    %buffers = ttg.local_alloc : () -> !ttg.memdesc<512x128xf32, #flat, #smem, mutable>
    %one = ttg.memdesc_index %buffers[%zero] :
        !ttg.memdesc<512x128xf32, #flat, #smem, mutable> -> !ttg.memdesc<128xf32, #flat, #smem, mutable>
    %value = ttg.local_load %one : !ttg.memdesc<128xf32, #flat, #smem, mutable> -> tensor<128xf32, #block>
    %p = tt.splat %out : !tt.ptr<f32> -> !pointers
    tt.store %p, %value : !pointers
    tt.return
  }""")

TMEM_TOO_LARGE = module(
    """\
  tt.func public @large(%out: !tt.ptr<f32>) {
    %zero = arith.constant 0 : i32
    %buffers = ttng.tmem_alloc : () -> !ttg.memdesc<9x128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %one = ttg.memdesc_index %buffers[%zero] :
        !ttg.memdesc<9x128x64xf32, #tmem, #ttng.tensor_memory, mutable>
        -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %value = ttng.tmem_load %one :
        !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #rows>
    %p = tt.splat %out : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #rows>
    tt.store %p, %value : tensor<128x64x!tt.ptr<f32>, #rows>
    tt.return
  }""",
    capability=100,
)

ABORTING = module("""\
  tt.func public @dot() {
    %yes = arith.constant true
    // Without a layout on the accumulator stock's verifier asserts, and takes the process with it.
    %acc = arith.constant dense<0.0> : tensor<64x64xf32>
    %a = ttg.local_alloc : () -> !operand
    %d = ttng.warp_group_dot %a, %a, %acc, %yes {inputPrecision = 0 : i32} :
        !operand * !operand -> tensor<64x64xf32>
    tt.return
  }""")
