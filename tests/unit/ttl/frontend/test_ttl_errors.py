"""Errors in TTL kernels: one line, at the place in the user's source, that says what was expected and found.

Each kernel has one fault, in the line that ends in `# here`.
"""

# Kernels that are wrong on purpose.
# ruff: noqa: B007, F821, F841, SIM108, SIM113

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.frontend import compile_kernel
from tlx_xdsl.ttl.language.kernel import Kernel

TILED = ttl.TensorSpec((64, 96))
BF16 = ttl.TensorSpec((64, 96), ttl.bfloat16)
I32 = ttl.tensor((64, 96), ttl.int32)
ROWS = ttl.TensorSpec((64, 96), layout=ttl.interleaved)
SHARDED = ttl.TensorSpec((64, 96), layout=ttl.sharded((2, 3), (1, 1)))

CASES: list[Any] = []


def expect(*said: str, specs: tuple[ttl.TensorSpec, ...] = (TILED,), **options: Any) -> Callable[[Any], Any]:
    """Register a kernel with the parts of the message that it must give."""

    def register(given: Any) -> Any:
        kernel = given if isinstance(given, Kernel) else ttl.kernel(**options)(given)
        CASES.append(pytest.param(kernel, specs, said, id=kernel.name))
        return kernel

    return register


# --- options of the kernel ------------------------------------------------------------------------------------------


@expect("'grid' is two positive integers (columns, rows)", "found (1, 1, 1) with 3 dimensions")
@ttl.kernel(grid=(1, 1, 1))  # here
def grid_of_three_dimensions(a):
    pass


@expect("'grid' has 9x1 cores, but the device has 8x8")
@ttl.kernel(grid=(9, 1))  # here
def grid_larger_than_device(a):
    pass


@expect("'grid' is (columns, rows), \"auto\" or \"full\", found 'all'")
@ttl.kernel(grid="all")  # here
def grid_of_unknown_word(a):
    pass


@expect("the function that gives 'grid' raised ZeroDivisionError: ")
@ttl.kernel(grid=lambda: 1 // 0)  # here
def grid_that_fails(a):
    pass


@expect("'memory_space' is 'L1' or 'DRAM', found 'SRAM': circular buffers are in L1")
@ttl.kernel(memory_space="SRAM")  # here
def unknown_memory_space(a):
    pass


@expect("ttl.kernel has no option 'fp32_dest_acc', did you mean 'fp32_dest_acc_en'?")
@ttl.kernel(fp32_dest_acc=True)  # here
def unknown_option(a):
    pass


@expect("'tiled' is True or False, found 'yes'")
@ttl.kernel(tiled="yes")  # here
def flag_that_is_a_word(a):
    pass


@expect("'missing_argument' has the parameters a, b, found 1 argument")
def missing_argument(a, b):  # here
    pass


@expect("the kernel 'without_threads' has no thread")
def without_threads(a):  # here
    pass


# --- circular buffers -----------------------------------------------------------------------------------------------


@expect("'buffer_factor' is the number of blocks for which there is room, at least 1, found 0")
def no_buffer(a):
    ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=0)  # here


@expect("'buffer_factor' must be an integer, found 1.5")
def fractional_buffer(a):
    ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=1.5)  # here


@expect("'shape' is two or more positive integers (..., rows, columns), found (1,)")
def buffer_of_one_dimension(a):
    ttl.make_circular_buffer_like(a, shape=(1,))  # here


@expect("'shape' is two or more positive integers (..., rows, columns), found 2")
def shape_that_is_no_tuple(a):
    ttl.make_circular_buffer_like(a, shape=2)  # here


@expect("the block has 2x1x1 tiles of f32, found a piece of 1x1 tile of f32")
def block_of_more_dimensions(a):
    cb = ttl.CircularBuffer(shape=(2, 1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0, 0], cb.reserve())  # here


@expect("unexpected keyword argument 'bufer_factor', did you mean 'buffer_factor'?", "expected")
def misspelt_argument(a):
    ttl.make_circular_buffer_like(a, shape=(1, 1), bufer_factor=2)  # here


@expect("expected a tensor of the kernel, found 3")
def buffer_like_a_number(a):
    ttl.make_circular_buffer_like(3, shape=(1, 1))  # here


@expect("a block has whole rows of 96 elements, found (4, 32)", specs=(ROWS,))
def rows_that_are_not_whole(a):
    ttl.make_circular_buffer_like(a, shape=(4, 32))  # here


@expect("elements of a tensor are float32", "found float64")
def buffer_of_unknown_elements(a):
    ttl.CircularBuffer(shape=(1, 1), dtype="float64")  # here


@expect("make them in the kernel's own body")
def buffer_in_a_thread(a):
    @ttl.compute()
    def compute():
        ttl.CircularBuffer(shape=(1, 1))  # here


@expect("circular buffer protocol violation: pop without a matching ttl.cb_wait")
def pop_without_wait(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        cb.pop()  # here


@expect("push without a matching ttl.cb_reserve")
def push_without_reserve(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        cb.push()  # here


@expect("this block was waited for: give it back with '.pop()'")
def push_of_what_was_read(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        cb.wait().push()  # here


@expect("this block is used after it was popped")
def use_after_pop(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        block = cb.wait()
        block.pop()
        with cb.reserve() as o:
            o.store(block)  # here


@expect("this block is popped twice: leave it to the 'with'")
def popped_twice(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as block:
            block.pop()  # here


@expect("pushed, but nothing was stored to it")
def missing_store(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.reserve():  # here
            pass


@expect("pushed, but nothing was copied to it (ttl.copy)")
def missing_copy(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        block = cb.reserve()
        block.push()  # here


@expect("a circular buffer has one consumer, found a second thread")
def two_consumers(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        cb.wait().pop()

    @ttl.datamovement()
    def write():
        block = cb.wait()  # here
        block.pop()


@expect("'with' takes blocks of circular buffers", "found the circular buffer 'cb'")
def with_a_buffer(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb as block:  # here
            pass


@expect("'with' takes blocks of circular buffers", "found the tensor 'a' of 64x96xf32")
def with_a_tensor(a):
    @ttl.compute()
    def compute():
        with a as block:  # here
            pass


@expect("the circular buffer 'cb' has no attribute 'wiat', did you mean 'wait'?")
def misspelt_method(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        cb.wiat()  # here


@expect("'wait' of a circular buffer happens in a thread")
def wait_outside_of_threads(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    cb.wait()  # here


# --- threads --------------------------------------------------------------------------------------------------------


@expect("the thread 'compute' takes no parameters, found 'cb'")
def thread_with_parameter(a):
    @ttl.compute()
    def compute(cb):  # here
        pass


@expect("a core has one compute thread, 'second' is one more")
def two_compute_threads(a):
    @ttl.compute()
    def first():
        pass

    @ttl.compute()
    def second():  # here
        pass


@expect("a core has two datamovement threads, 'third' is one more")
def three_datamovement_threads(a):
    @ttl.datamovement()
    def first():
        pass

    @ttl.datamovement()
    def second():
        pass

    @ttl.datamovement()
    def third():  # here
        pass


@expect("'ttl' has no 'compte', did you mean 'compute'?")
def misspelt_decorator(a):
    @ttl.compte()  # here
    def compute():
        pass


@expect("decorated with @ttl.compute() or @ttl.datamovement(), found 'ttl.core'")
def decorator_that_makes_no_thread(a):
    @ttl.core()  # here
    def compute():
        pass


@expect("ttl.copy is for datamovement threads, found it in a compute thread")
def copy_in_compute(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        ttl.copy(a[0, 0], cb.reserve())  # here


@expect("'+' is for compute threads, found it in a datamovement thread")
def computing_in_datamovement(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with cb.wait() as block:
            block + 1.0  # here


# --- copies ---------------------------------------------------------------------------------------------------------


@expect("one side is a block of a circular buffer, found a piece of the tensor 'a' and a piece of the tensor 'b'",
        specs=(TILED, TILED))  # fmt: skip
def copy_without_block(a, b):
    @ttl.datamovement()
    def read():
        ttl.copy(a[0, 0], b[0, 0])  # here


@expect("one side is a tensor or a pipe, found a block on both")
def copy_of_two_blocks(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    other = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(cb.wait(), other.reserve())  # here


@expect("say which piece of the tensor 'a' is copied")
def copy_of_a_whole_tensor(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a, cb.reserve())  # here


@expect("expected a block, found the circular buffer 'cb': get one with '.reserve()'")
def copy_to_a_buffer(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0, 0], cb)  # here


@expect("writing to a block needs one that was reserved, found a block of 1x1 tile of f32 that was waited for")
def copy_to_what_is_read(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0, 0], cb.wait())  # here


@expect("the block has 2x2 tiles of f32, found a piece of 1x1 tile of f32", "write a[r:r+2, c:c+2]")
def single_index_for_several_tiles(a):
    cb = ttl.make_circular_buffer_like(a, shape=(2, 2))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0, 0], cb.reserve())  # here


@expect("the block has 1x2 tiles of f32, found a piece of 2x1 tiles of f32")
def piece_of_another_shape(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 2))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0:2, 0:1], cb.reserve())  # here


@expect("the tensor 'b' of 64x96xf32 has pieces of 1x96 elements of f32, but the block has 1x1 tile of f32",
        specs=(TILED, ROWS))  # fmt: skip
def rows_into_tiles(a, b):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(b[0:1, :], cb.reserve())  # here


@expect("has pieces of 1x1 tile of bf16, but the block has 1x1 tile of f32", specs=(TILED, BF16))
def piece_of_another_type(a, b):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(b[0, 0], cb.reserve())  # here


@expect("the tensor 'a' of 64x96xf32 has 2 rows of tiles, found row 2")
def tile_outside_of_the_tensor(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[2, 0], cb.reserve())  # here


@expect("has 3 columns of tiles, found columns 2 to 3")
def piece_outside_of_the_tensor(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 2))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0:1, 2:4], cb.reserve())  # here


@expect("has 6 shards, found number 6", specs=(SHARDED,))
def shard_that_is_not_there(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[6], cb.reserve())  # here


@expect("the size of a piece of 'a' must be known at compile time")
def piece_of_unknown_size(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for i in range(2):
            ttl.copy(a[0:i, 0:1], cb.reserve())  # here


@expect("the tensor 'a' of 64x96xf32 has 2 dimensions, found 3 indices")
def three_indices(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0, 0, 0], cb.reserve())  # here


@expect("an index of 'a' must be an integer, found 0.5")
def fractional_index(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        ttl.copy(a[0.5, 0], cb.reserve())  # here


# --- computing ------------------------------------------------------------------------------------------------------


@expect("'+' needs a block, found the tensor 'a' of 64x96xf32: copy it into a circular buffer")
def tensor_as_a_block(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.reserve() as o:
            o.store(a + 1.0)  # here


@expect("'*' needs a block, found the circular buffer 'cb': wait for one with '.wait()'")
def buffer_as_a_block(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        cb * 2  # here


@expect("reads a block of 1x1 tile of f32 that was reserved, which is only written")
def reading_what_was_reserved(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.reserve() as o:
            o.store(o + 1.0)  # here


@expect("is read, not written: store to one that was reserved")
def storing_to_what_is_read(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            x.store(x)  # here


@expect("'+' needs two blocks of one shape and type, found", "ttl.math.broadcast(x, (2, 2), dims=[1])")
def blocks_of_different_shapes(a):
    wide = ttl.make_circular_buffer_like(a, shape=(2, 2))
    narrow = ttl.make_circular_buffer_like(a, shape=(2, 1))

    @ttl.compute()
    def compute():
        with wide.wait() as x, narrow.wait() as y:
            x + y  # here


@expect("'-' needs two blocks of one shape and type, found", "ttl.math.typecast", specs=(TILED, I32))
def blocks_of_different_types(a, b):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, b_cb.wait() as y:
            x - y  # here


@expect("the block has 2x1 tiles of f32, found a value of 1x1 tile of f32")
def store_of_another_shape(a):
    small = ttl.make_circular_buffer_like(a, shape=(1, 1))
    large = ttl.make_circular_buffer_like(a, shape=(2, 1))

    @ttl.compute()
    def compute():
        with small.wait() as x, large.reserve() as o:
            o.store(x)  # here


@expect("'@' needs blocks of (m, k) and (k, n) tiles of one type, found 1x2 tiles of f32 and 1x2 tiles of f32")
def product_that_does_not_fit(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 2))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            x @ x  # here


@expect("found 1x1 tile of f32 and 2x1x1 tiles of f32: dimensions before these are equal, or the left block's alone")
def product_of_one_left_matrix(a):
    one = ttl.make_circular_buffer_like(a, shape=(1, 1))
    two = ttl.make_circular_buffer_like(a, shape=(2, 1, 1))

    @ttl.compute()
    def compute():
        with one.wait() as x, two.wait() as y:
            x @ y  # here


@expect("ttl.math.broadcast: dims=[1] to 2x2 tiles needs 1 column of tiles along dimension 1", "found a block of 2x2")
def broadcast_of_what_is_wide(a):
    cb = ttl.make_circular_buffer_like(a, shape=(2, 2))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            ttl.math.broadcast(x, x, dims=[1])  # here


@expect("'shape' of this reduction is (2, 1), found (1, 2)")
def shape_of_another_reduction(a):
    cb = ttl.make_circular_buffer_like(a, shape=(2, 2))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            ttl.math.reduce_sum(x, [1], (1, 2))  # here


@expect("'dims' are dimensions of a block, [0], [1] or [0, 1], found [2]")
def dimension_that_is_not_there(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            ttl.math.reduce_sum(x, dims=[2])  # here


@expect("has multiples of 32 rows and columns of f32 or bf16, found 1x96 elements of f32", specs=(ROWS,))
def computing_with_rows(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 96))

    @ttl.compute()
    def compute():
        with cb.wait() as x:  # here
            ttl.math.exp(x)


@expect("'ttl.math' has no 'expp', did you mean 'exp'?")
def misspelt_function(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            ttl.math.expp(x)  # here


@expect("'max' is for numbers: ttl.math.max is that of blocks")
def python_max_of_blocks(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            max(x, x)  # here


@expect("'**' is not for blocks: the exponent is a number")
def power_of_blocks(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            x**x  # here


@expect("a block of 1x1 tile of f32 that was reserved, which is only written: use the value that is stored")
def reading_what_was_stored(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.reserve() as o:
            o.store(1)
            o += o  # here


@expect("the number of '*' must be known at compile time, found an integer of the run")
def loop_index_as_a_number(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        for i in range(3):
            with cb.wait() as x:
                x * i  # here


@expect("the number of '*' must fit into a float of 32 bits, found 1e+300")
def number_beyond_a_float(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x:
            x * 1e300  # here


@expect("whether this is the first addition to the block is not known", "ttl.math.fill(block, 0.0)")
def first_addition_in_a_branch(a):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    out = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.compute()
    def compute():
        with out.reserve() as o:
            for i in range(3):
                if i > 0:
                    with cb.wait() as x:
                        o += x  # here


# --- pipes, semaphores and coordinates ------------------------------------------------------------------------------


@expect("'dst' of a pipe is outside of the grid: x is from 0 to 1, found 2", grid=(2, 2))
def pipe_out_of_the_grid(a):
    ttl.Pipe(src=(0, 0), dst=(2, 0))  # here


@expect("a pipe ends at 'dst', a core (x, y), or at 'dst_range', found both or neither", grid=(2, 2))
def pipe_without_end(a):
    ttl.Pipe(src=(0, 0))  # here


@expect("'dst_range' of a pipe has no core: the slice from 1 to 1 is empty", grid=(2, 2))
def pipe_to_no_core(a):
    ttl.Pipe(src=(0, 0), dst_range=(slice(1, 1), 0))  # here


@expect("a net is of a list of pipes")
def net_of_numbers(a):
    ttl.PipeNet([1, 2])  # here


@expect("'fn' is a function of the kernel that takes a pipe, found 1", grid=(2, 1))
def pipe_without_function(a):
    pipe = ttl.Pipe(src=(0, 0), dst=(1, 0))

    @ttl.datamovement()
    def read():
        pipe.if_src(1)  # here


@expect("a grid has two dimensions: 'dims' is 1 or 2, found 3")
def third_coordinate(a):
    ttl.core(dims=3)  # here


@expect("the semaphores of a range of cores can be set, not increased")
def increase_of_a_range(a):
    semaphore = ttl.Semaphore(0)

    @ttl.datamovement()
    def read():
        semaphore.get_remote_multicast().inc(1)  # here


@expect("the semaphore of another core has no 'wait_eq': call it on the semaphore itself", grid=(2, 1))
def wait_for_another_core(a):
    semaphore = ttl.Semaphore(0)

    @ttl.datamovement()
    def read():
        semaphore.get_remote((1, 0)).wait_eq(1)  # here


# --- Python ---------------------------------------------------------------------------------------------------------


@expect("name 'colums' is not defined, did you mean 'columns'?")
def unknown_name(a):
    columns = a.shape[1]
    ttl.make_circular_buffer_like(a, shape=(1, colums))  # here


@expect("unsupported statement in a TTL kernel: 'while' (a loop of the run is a 'for' over a range)")
def while_loop(a):
    @ttl.compute()
    def compute():
        while True:  # here
            pass


@expect("unsupported statement in a TTL kernel: 'break'")
def break_out(a):
    @ttl.compute()
    def compute():
        for _ in range(3):
            break  # here


@expect("unsupported expression in a TTL kernel: a dictionary")
def dictionary(a):
    sizes = {"rows": 1}  # here


@expect("'return' can't stand in a loop of the run, or before the end of a 'with'")
def return_in_a_loop(a):
    @ttl.compute()
    def compute():
        for _ in range(3):
            return  # here


@expect("'count' has no value here: a loop changes it from one iteration to the next")
def counter_in_a_loop(a):
    @ttl.compute()
    def compute():
        count = 0
        for _ in range(3):
            count += 1  # here


@expect("'row' has no value here: the branches of an 'if' of the run leave it with different values")
def different_values_after_branches(a):
    @ttl.datamovement()
    def read():
        x, _ = ttl.core(dims=2)
        if x > 0:
            row = 1
        else:
            row = 2
        ttl.copy(a[row, 0], row)  # here


@expect("what a kernel makes is the same on all cores: put this 'if' into a thread", grid=(2, 1))
def branch_of_the_run_in_the_kernel(a):
    if ttl.core(dims=1) == 0:  # here
        pass


@expect("an 'assert' is of what is known at compile time")
def assertion_of_the_run(a):
    @ttl.compute()
    def compute():
        for i in range(3):
            assert i < 3  # here


@expect("64 rows are too many")
def failed_assertion(a):
    assert a.shape[0] < 64, f"{a.shape[0]} rows are too many"  # here


@expect("'/' is not for integers that are known at run time only: '//' is the division of integers")
def division_of_an_index(a):
    @ttl.compute()
    def compute():
        for i in range(3):
            i / 2  # here


@expect("a loop goes over 'range(...)', a tuple or a list, found the tensor 'a'")
def loop_over_a_tensor(a):
    @ttl.compute()
    def compute():
        for x in a:  # here
            pass


@expect("'sqrt' needs arguments that are known at compile time")
def function_of_python_of_an_index(a):
    @ttl.compute()
    def compute():
        for i in range(3):
            math.sqrt(i)  # here


@expect("'sqrt' raised ValueError: math domain error")
def function_of_python_that_fails(a):
    math.sqrt(-1)  # here


@expect("cannot assign to an item: a tensor is written by ttl.copy(block, t[...])")
def assignment_to_a_tensor(a):
    @ttl.datamovement()
    def write():
        a[0, 0] = 1  # here


@expect("the function 'again' is called within itself")
def recursion(a):
    def again():
        again()  # here

    again()


@expect("scaled: missing a required argument: 'factor'; expected scaled(x, factor)")
def missing_argument_of_a_function(a):
    def scaled(x, factor):
        return x * factor

    scaled(2)  # here


@pytest.mark.parametrize(("kernel", "specs", "said"), CASES)
def test_error(kernel: Kernel, specs: tuple[ttl.TensorSpec, ...], said: tuple[str, ...]) -> None:
    lines, first = inspect.getsourcelines(kernel.fn)
    (expected,) = (first + at for at, line in enumerate(lines) if "# here" in line)
    with pytest.raises(CompilationError) as caught:
        compile_kernel(kernel, specs)
    error = caught.value
    for part in said:
        assert part in error.message
    assert "\n" not in error.message
    assert "internal error" not in error.message
    assert error.location is not None
    assert (error.location.filename, error.location.line) == (__file__, expected), str(error)
    assert error.location.column > 0
    assert str(error).splitlines()[2].strip() == "^"


def test_calls_have_the_place_of_the_call() -> None:
    """An error in a function of the kernel has the line of the function; its operations know the call."""

    def helper(cb):
        cb.pop()

    @ttl.kernel()
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

        @ttl.compute()
        def compute():
            helper(cb)

    with pytest.raises(CompilationError, match="pop without a matching") as caught:
        compile_kernel(kernel, (TILED,))
    assert any("called from here" in note for note in caught.value.notes)
