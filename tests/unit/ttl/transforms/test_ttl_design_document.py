"""The TTL design document, section by section: what its examples become here (docs/ttl-conformance.md has the table).

Where a form differs from the document's, the comment says why.
"""

from collections import Counter

import pytest

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.ttl.transforms.pipeline import ttl_pipeline

TILE = "!ttcore.tile<32x32, f32>"
CB = f"!ttl.cb<[1, 1], {TILE}, 2>"
BLOCK = f"tensor<1x1x{TILE}>"
TENSOR = "tensor<1024x1024xf32, #enc>"
ACCESSOR = f"!ttl.tensor_accessor<{TENSOR}>"
READ, WRITE = "!ttl.transfer_handle<read>", "!ttl.transfer_handle<write>"

ELEMENTWISE_ADD = f"""
#enc = #ttl.tensor_encoding<DRAM, #ttl.layout<sharded, grid=[32, 32], tiles_per_shard=[1, 1]>>
ttl.kernel @elementwise_add(%a: {TENSOR}, %b: {TENSOR}, %c: {TENSOR}) attributes {{grid = #ttcore.grid<1x1>}} {{
  %a_cb = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=2 : {CB}
  %b_cb = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=2 : {CB}
  %c_cb = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=2 : {CB}

  %a_accessor = ttl.tensor_accessor %a : {TENSOR} -> {ACCESSOR}
  %b_accessor = ttl.tensor_accessor %b : {TENSOR} -> {ACCESSOR}
  %c_accessor = ttl.tensor_accessor %c : {TENSOR} -> {ACCESSOR}
  %shard_id = ttl.get_shard_id() : index

  ttl.datamovement_thread {{
    %a_view = ttl.cb_reserve %a_cb : {CB} -> {BLOCK}
    %xf_a = ttl.copy %a_accessor[%shard_id], %a_view : {ACCESSOR}, {BLOCK} -> !ttl.transfer_handle<read>
    ttl.wait %xf_a
    ttl.cb_push %a_cb
    %b_view = ttl.cb_reserve %b_cb : {CB} -> {BLOCK}
    %xf_b = ttl.copy %b_accessor[%shard_id], %b_view : {ACCESSOR}, {BLOCK} -> !ttl.transfer_handle<read>
    ttl.wait %xf_b
    ttl.cb_push %b_cb
    ttl.thread_return
  }}

  ttl.compute_thread {{
    %a_tiles = ttl.cb_wait %a_cb : {CB} -> {BLOCK}
    %b_tiles = ttl.cb_wait %b_cb : {CB} -> {BLOCK}
    %c_tiles = ttl.add %a_tiles, %b_tiles : {BLOCK}, {BLOCK} -> {BLOCK}
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    %c_view = ttl.cb_reserve %c_cb : {CB} -> {BLOCK}
    ttl.store %c_tiles, %c_view : {BLOCK}, {BLOCK}
    ttl.cb_push %c_cb
    ttl.thread_return
  }}

  ttl.datamovement_thread {{
    %c_view = ttl.cb_wait %c_cb : {CB} -> {BLOCK}
    %xf_c = ttl.copy %c_view, %c_accessor[%shard_id] : {BLOCK}, {ACCESSOR} -> !ttl.transfer_handle<write>
    ttl.wait %xf_c
    ttl.cb_pop %c_cb
    ttl.thread_return
  }}

  ttl.kernel_return
}}
"""
"""Section 5.2. The document's compute thread reserves a block and pushes it unwritten; `ttl.store` writes it."""


def passed(text, *names):
    """A module after some passes."""
    module = parse_module(text)
    verify_module(module)
    for name in names:
        pass_class(name)().apply(make_context(), module)
        verify_module(module)
    return module


def lowered(text, **options):
    """A module after the pipeline, before C++."""
    module = parse_module(text)
    for each in ttl_pipeline(to="ttkernel", schedule=False, **options):
        each.apply(make_context(), module)
    verify_module(module)
    return module


def names_in(module):
    """Count each kind of operation."""
    return Counter(op.name for op in module.walk())


def test_5_1_the_order_of_passes():
    assert [each.name for each in ttl_pipeline(schedule=False)] == [
        "ttl-canonicalize",
        "ttl-merge-pipes",
        "ttl-verify-layouts",
        "ttl-report-repairs",
        "ttl-split-pipes",
        "ttl-infer-pipe-semaphores",
        "ttl-insert-synchronization",
        "ttl-infer-dst-requirements",
        "ttl-bufferize",
        "ttl-spill-dst-registers",
        "ttl-allocate-circular-buffers",
        "ttl-expand-threads",
        "ttl-assign-dst-registers",
        "ttl-lower-compute",
        "ttl-lower-data-movement",
        "ttl-lower-synchronization",
        "ttkernel-hoist-inits",
        "ttl-lower-affine",
        "convert-ttkernel-to-emitc",
    ]


def test_5_5_the_affine_passes_come_with_the_analyses():
    names = [each.name for each in ttl_pipeline(schedule=True)]
    affine = [
        "affine-loop-fusion",
        "affine-data-copy-generate",
        "ttl-affine-dependence-analysis",
        "ttl-schedule-pipeline",
    ]
    first = names.index(affine[0])
    assert names[first : first + 4] == affine
    assert names[first - 1] == "ttl-infer-pipe-semaphores"
    assert names[first + 4] == "ttl-insert-synchronization"


EXPANDED = """\
ttl.kernel_driver @elementwise_add_driver(
%a_cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32} :
%b_cb = ttl.bind_cb {cb_index = 1 : i32, buffer_factor = 2 : i32} :
%c_cb = ttl.bind_cb {cb_index = 2 : i32, buffer_factor = 2 : i32} :
%a_accessor = ttl.tensor_accessor %a :
%b_accessor = ttl.tensor_accessor %b :
%c_accessor = ttl.tensor_accessor %c :
%shard_id = ttl.get_shard_id() : index
ttl.launch_thread @dm_reader(%a_cb, %b_cb, %a_accessor, %b_accessor, %shard_id)
ttl.launch_thread @compute(%a_cb, %b_cb, %c_cb)
ttl.launch_thread @dm_writer(%c_cb, %c_accessor, %shard_id)
ttl.kernel_driver_return
func.func @dm_reader(%a_cb: !ttl.cb<
%a_view = ttl.cb_reserve %a_cb :
%xf_a = ttl.copy %a_accessor[%shard_id], %a_view :
ttl.wait %xf_a
ttl.cb_push %a_cb
%b_view = ttl.cb_reserve %b_cb :
%xf_b = ttl.copy %b_accessor[%shard_id], %b_view :
ttl.wait %xf_b
ttl.cb_push %b_cb
func.return
func.func @compute(%a_cb: !ttl.cb<
%a_tiles = ttl.cb_wait %a_cb :
%b_tiles = ttl.cb_wait %b_cb :
%c_tiles = ttl.add %a_tiles, %b_tiles :
ttl.cb_pop %a_cb
ttl.cb_pop %b_cb
%c_view = ttl.cb_reserve %c_cb :
ttl.store %c_tiles, %c_view :
ttl.cb_push %c_cb
func.return
func.func @dm_writer(%c_cb: !ttl.cb<
%c_view = ttl.cb_wait %c_cb :
%xf_c = ttl.copy %c_view, %c_accessor[%shard_id] :
ttl.wait %xf_c
ttl.cb_pop %c_cb
func.return
"""
"""Section 5.2's output, line by line, as far as types."""


def test_5_2_expand_threads_gives_the_document_s_output():
    text = print_module(passed(ELEMENTWISE_ADD, "ttl-expand-threads"), locations=False)
    lines = [line.strip() for line in text.splitlines()]
    shown = [line for line in lines if line not in ("builtin.module {", "}") and not line.startswith("#")]
    for found, expected in zip(shown, EXPANDED.splitlines(), strict=True):
        assert found.startswith(expected)
    threads = [line.partition("ttl.kernel_thread = ")[2] for line in shown if line.startswith("func.func")]
    # The document's `tensix` is read as `compute`, the name that the hardware's dialect has.
    assert threads == ["#ttkernel.thread<noc>} {", "#ttkernel.thread<compute>} {", "#ttkernel.thread<noc>} {"]


def without_store(text):
    """Leave out the store, which the document's example does not print."""
    return "".join(line for line in text.splitlines(keepends=True) if "ttl.store" not in line)


def test_5_2_the_example_as_printed():
    # Nothing is stored into the block that the compute thread pushes. There is one value that can be meant.
    printed = without_store(ELEMENTWISE_ADD)
    text = print_module(passed(printed, "ttl-expand-threads"), locations=False)
    lines = [line.strip() for line in text.splitlines()]
    shown = [line for line in lines if line not in ("builtin.module {", "}") and not line.startswith("#")]
    for found, expected in zip(shown, without_store(EXPANDED).splitlines(), strict=True):
        assert found.startswith(expected)
    with collected_diagnostics() as remarks:
        assert names_in(lowered(printed)) == names_in(lowered(ELEMENTWISE_ADD))
    (remark,) = [each.message for each in remarks if each.severity == "remark"]
    assert remark == (
        "this block of 'c_cb' is reserved and pushed, but nothing is stored into it: the compiler stores the one value "
        "of its type that nothing uses"
    )
    with pytest.raises(CompilationError, match="nothing is stored into it: store the result"):
        lowered(printed, strict=True)
    second = f"    %x = ttl.exp %a_tiles : {BLOCK} -> {BLOCK}\n    ttl.cb_pop %a_cb\n"
    other = printed.replace("    ttl.cb_pop %a_cb\n", second)
    verify_module(parse_module(printed))
    with pytest.raises(CompilationError, match=r"nothing is stored into it: expected a ttl\.store"):
        verify_module(parse_module(other))


def test_5_2_the_compute_thread_is_tensix():
    text = "func.func @f() attributes {ttl.kernel_thread = #ttkernel.thread<tensix>} {\n  func.return\n}\n"
    assert "#ttkernel.thread<compute>" in print_module(parse_module(text))


def test_5_2_bufferization_leaves_no_tensor():
    module = passed(ELEMENTWISE_ADD, "ttl-insert-synchronization", "ttl-infer-dst-requirements", "ttl-bufferize")
    text = print_module(module, locations=False)
    assert "tensor<" not in text.replace("ttl.tensor_accessor<", "").replace("tensor_encoding<", "")
    assert names_in(module)["ttl.compute"] == 1


def test_6_3_sharded_tensors_are_read_by_shards():
    # The shard's number and where the block is; the address is asked at run time, since a block's place in its buffer
    # changes. The network on chip is the processor's own.
    found = names_in(lowered(ELEMENTWISE_ADD))
    assert found["ttkernel.noc_async_read_shard"] == 2
    assert found["ttkernel.noc_async_write_shard"] == 1
    assert found["ttkernel.noc_async_read_barrier"] == 2
    assert found["ttkernel.TensorAccessor"] == 3


def with_layout(layout):
    return ELEMENTWISE_ADD.replace("#ttl.layout<sharded, grid=[32, 32], tiles_per_shard=[1, 1]>", layout)


def test_6_3_tiled_tensors_are_read_by_tiles():
    found = names_in(lowered(with_layout("#ttl.layout<tiled>")))
    assert found["ttkernel.noc_async_read_tile"] == 2
    assert found["ttkernel.noc_async_write_tile"] == 1


ROW_TENSOR = "tensor<8x64xf32, #enc>"
ROW_ACCESSOR = f"!ttl.tensor_accessor<{ROW_TENSOR}>"
ROW_CB, ROW_BLOCK = "!ttl.cb<[4, 64], f32, 2>", "tensor<4x64xf32>"

ROWS = f"""
#enc = #ttl.tensor_encoding<DRAM, #ttl.layout<interleaved>>
ttl.kernel @copy_rows(%a: {ROW_TENSOR}, %b: {ROW_TENSOR}) {{
  %cb = ttl.create_cb shape=[4, 64], element_type=f32, buffer_factor=2 : {ROW_CB}
  %from = ttl.tensor_accessor %a : {ROW_TENSOR} -> {ROW_ACCESSOR}
  %to = ttl.tensor_accessor %b : {ROW_TENSOR} -> {ROW_ACCESSOR}
  ttl.datamovement_thread @read {{
    affine.for %i = 0 to 8 step 4 {{
      %v = ttl.cb_reserve %cb : {ROW_CB} -> {ROW_BLOCK}
      %xf = ttl.copy %from[%i], %v : {ROW_ACCESSOR}, {ROW_BLOCK} -> {READ}
      ttl.wait %xf
      ttl.cb_push %cb
    }}
    ttl.thread_return
  }}
  ttl.datamovement_thread @write {{
    affine.for %i = 0 to 8 step 4 {{
      %v = ttl.cb_wait %cb : {ROW_CB} -> {ROW_BLOCK}
      %xf = ttl.copy %v, %to[%i] : {ROW_BLOCK}, {ROW_ACCESSOR} -> {WRITE}
      ttl.wait %xf
      ttl.cb_pop %cb
    }}
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""


def test_6_3_interleaved_tensors_are_read_by_pages():
    found = names_in(lowered(ROWS))
    assert found["ttkernel.noc_async_read_page"] >= 1
    assert found["ttkernel.noc_async_write_page"] >= 1


NEAR, FAR = "!ttl.tensor_accessor<tensor<32x32xf32, #enc>>", "!ttl.tensor_accessor<tensor<128x32xf32, #enc>>"

MULTICAST = f"""
#enc = #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>
#grid = #ttcore.grid<4x1>
ttl.kernel @multicast(%a: tensor<32x32xf32, #enc>, %b: tensor<128x32xf32, #enc>) attributes {{grid = #grid}} {{
  %cb = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=2 : {CB}
  %from = ttl.tensor_accessor %a : tensor<32x32xf32, #enc> -> {NEAR}
  %to = ttl.tensor_accessor %b : tensor<128x32xf32, #enc> -> {FAR}
  %pipe = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
  %x, %y = ttl.core(dims = 2) : index, index
  ttl.datamovement_thread @read {{
    %zero = arith.constant 0 : index
    ttl.if_src %pipe {{
      %block = ttl.cb_reserve %cb : {CB} -> {BLOCK}
      %read = ttl.copy %from[%zero, %zero], %block : {NEAR}, {BLOCK} -> {READ}
      ttl.wait %read
      %xf = ttl.copy %block, %pipe : {BLOCK}, !ttl.pipe -> {WRITE}
      ttl.wait %xf
      ttl.cb_push %cb
    }}
    ttl.if_dst %pipe {{
      %block = ttl.cb_reserve %cb : {CB} -> {BLOCK}
      %xf = ttl.copy %pipe, %block : !ttl.pipe, {BLOCK} -> {READ}
      ttl.wait %xf
      ttl.cb_push %cb
    }}
    ttl.thread_return
  }}
  ttl.datamovement_thread @write {{
    %zero = arith.constant 0 : index
    %block = ttl.cb_wait %cb : {CB} -> {BLOCK}
    %xf = ttl.copy %block, %to[%x, %zero] : {BLOCK}, {FAR} -> {WRITE}
    ttl.wait %xf
    ttl.cb_pop %cb
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""
"""Sections 5.2.1 and 6.3: `ttl.Pipe(src=(0, 0), dst_range=(slice(1, 4), 0))`."""


def test_5_2_1_multicasts_have_coordinates_relative_to_the_sender():
    found = names_in(lowered(MULTICAST))
    # `my_x` and `my_y` are those of the processor's own network on chip, so they take no number of one; the number of
    # destinations, which the document leaves out, is an operand of TT-Metalium's.
    assert found["ttkernel.my_x"] >= 1
    assert found["ttkernel.my_y"] >= 1
    assert found["ttkernel.get_noc_multicast_addr"] >= 1
    assert found["ttkernel.noc_async_write_multicast"] == 1
    assert found["ttkernel.noc_async_write_barrier"] >= 1


def test_5_2_pipes_get_semaphores():
    module = passed(MULTICAST, "ttl-infer-pipe-semaphores")
    found = names_in(module)
    assert found["ttl.create_semaphore"] == 2
    assert found["ttl.semaphore_wait_eq"] == 2
    assert found["ttl.semaphore_set"] >= 2
    assert found["ttl.semaphore_inc"] == 1


def compute(operation, *, inputs=("a", "b"), element="f32", shape=(1, 1), result=(1, 1)):
    """A kernel whose compute thread stores what `operation` makes of blocks %a and %b."""
    tile = f"!ttcore.tile<32x32, {element}>"
    lines = ["ttl.kernel @k() {"]
    for name, size in {**dict.fromkeys(inputs, shape), "out": result}.items():
        cb = f"!ttl.cb<[{size[0]}, {size[1]}], {tile}, 2>"
        lines.append(
            f"  %{name}_cb = ttl.create_cb shape=[{size[0]}, {size[1]}], element_type={tile}, buffer_factor=2 : {cb}"
        )
    lines.append("  ttl.compute_thread {")
    for name, step, size in [*((name, "wait", shape) for name in inputs), ("out", "reserve", result)]:
        types = f"!ttl.cb<[{size[0]}, {size[1]}], {tile}, 2> -> tensor<{size[0]}x{size[1]}x{tile}>"
        lines.append(f"    %{name} = ttl.cb_{step} %{name}_cb : {types}")
    type_, stored = (f"tensor<{size[0]}x{size[1]}x{tile}>" for size in (shape, result))
    operands = ", ".join([type_] * len(inputs))
    lines += [
        f"    %r = {operation.replace('T', operands)} -> {stored}",
        f"    ttl.store %r, %out : {stored}, {stored}",
        "    ttl.cb_push %out_cb",
        *(f"    ttl.cb_pop %{name}_cb" for name in inputs),
        "    ttl.thread_return",
        "  }",
        "  ttl.kernel_return",
        "}",
    ]
    return "\n".join(lines)


STEPS = ("ttl-infer-dst-requirements", "ttl-bufferize", "ttl-allocate-circular-buffers", "ttl-expand-threads")
LOWER = (*STEPS, "ttl-assign-dst-registers", "ttl-lower-compute", "ttl-lower-synchronization", "ttl-lower-affine")


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_6_2_matrix_unit(name):
    # With 16 bits, as the document has it; the matrix unit would round f32 to fewer bits, so that is the vector unit's.
    found = names_in(passed(compute(f"ttl.{name} %a, %b : T", element="bf16"), *LOWER))
    assert found[f"ttkernel.{name}_tiles_init"] == 1
    assert found[f"ttkernel.{name}_tiles"] == 1
    found = names_in(passed(compute(f"ttl.{name} %a, %b : T"), *LOWER))
    assert found[f"ttkernel.{name}_binary_tile"] == 1
    assert found["ttkernel.copy_tile"] == 2


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "relu", "gelu"])
def test_6_2_vector_unit(name):
    found = names_in(passed(compute(f"ttl.{name} %a : T", inputs=("a",)), *LOWER))
    assert found["ttkernel.init_sfpu"] == 1
    assert found[f"ttkernel.{name}_tile_init"] == 1
    assert found[f"ttkernel.{name}_tile"] == 1


def test_6_2_matrix_product():
    found = names_in(passed(compute("ttl.matmul %a, %b : T"), *LOWER))
    assert found["ttkernel.mm_init"] == 1
    assert found["ttkernel.matmul_tiles"] == 1


def test_6_2_and_6_3_circular_buffers_and_registers():
    module = passed(compute("ttl.add %a, %b : T", shape=(2, 1), result=(2, 1)), *LOWER)
    text = print_module(module, locations=False)
    found = names_in(module)
    for name in ("cb_wait_front", "cb_pop_front"):
        assert found[f"ttkernel.{name}"] == 2
    for name in ("cb_reserve_back", "cb_push_back"):
        assert found[f"ttkernel.{name}"] == 1
    # The document packs before it commits; the registers are the packer's between wait and release only.
    order = [op.name.removeprefix("ttkernel.") for op in module.walk() if "tile_regs" in op.name or "pack" in op.name]
    assert order == [
        "tile_regs_acquire",
        "tile_regs_commit",
        "tile_regs_wait",
        "pack_tile",
        "pack_tile",
        "tile_regs_release",
    ]
    # Section 6.1: a buffer for 2x1 tiles with two blocks is for 4 tiles; section 6.3: a step is about 2 of them.
    assert "!ttkernel.cb<4, !ttcore.tile<32x32, f32>>" in text
    assert "arith.constant 2 : i32" in text


def test_6_1_types():
    module = passed(compute("ttl.exp %a : T", inputs=("a",), shape=(2, 1), result=(2, 1)))
    text = print_module(module)
    assert "!ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 2>" in text
    assert "tensor<2x1x!ttcore.tile<32x32, f32>>" in text
