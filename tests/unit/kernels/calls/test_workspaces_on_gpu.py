"""The memory of streams on a GPU: it grows while launches use it, in several streams and threads, beside a capture."""

import threading

import pytest

from tlx_xdsl.kernels.calls.workspaces import WORKSPACES
from tlx_xdsl.kernels.gemm.dense import gemm

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

SIZES = (512, 1024, 1536)
"""Of the result, for products whose K is split among programs: each needs more memory than the one before."""

DEPTH = 16384


@pytest.fixture(autouse=True)
def nothing_is_kept():
    WORKSPACES.clear()
    yield
    WORKSPACES.clear()


@pytest.fixture(scope="module")
def products():
    """Factors and their products, by size; the kernels are loaded."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    found = {}
    for size in SIZES:
        a, b = (
            torch.randn(shape, device="cuda", generator=generator).half() for shape in ((size, DEPTH), (DEPTH, size))
        )
        found[size] = a, b, a.float() @ b.float()
        gemm(a, b)
    torch.cuda.synchronize()
    return found


def check(found, products):
    torch.cuda.synchronize()
    for size, each in found:
        expected = products[size][2]
        assert ((each.float() - expected).norm() / expected.norm()).item() < 1e-3


def multiply(products, sizes):
    return [(size, gemm(*products[size][:2])) for size in sizes]


def test_growing_while_launches_of_several_streams_are_under_way(products):
    streams = [torch.cuda.Stream() for _ in range(3)]
    found = []
    for size in SIZES:
        for stream in streams:
            with torch.cuda.stream(stream):
                found += multiply(products, [size] * 5)
    check(found, products)


@pytest.mark.parametrize("own_streams", [False, True])
def test_growing_in_threads(products, own_streams):
    """Threads that have not called CUDA before, on the default stream or one for each."""
    found = {}
    ready = threading.Barrier(2)
    streams = [torch.cuda.Stream() if own_streams else torch.cuda.default_stream() for _ in range(2)]

    def work(at):
        ready.wait()
        with torch.cuda.stream(streams[at]):
            found[at] = multiply(products, SIZES * 10 if at else SIZES[::-1] * 10)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    check([*found[0], *found[1]], products)


def test_growing_while_another_thread_captures(products):
    graph, found = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        captured = multiply(products, SIZES)
        other = threading.Thread(target=lambda: found.extend(multiply(products, SIZES)))
        other.start()
        other.join()
    for _, each in captured:
        each.fill_(torch.nan)
    graph.replay()
    check([*captured, *found], products)
    assert len(found) == len(SIZES)


def test_growing_in_a_pool_of_torch_s(products):
    """Memory of the stream is not there among the pool's, where it would stay."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        found = multiply(products, SIZES)
        check(found, products)
        del found
    kept = [each for each in pool.snapshot() if each["allocated_size"]]
    assert not kept


def test_memory_goes_and_comes_again(products):
    for _ in range(2):
        check(multiply(products, SIZES), products)
        WORKSPACES.clear()


def test_out_of_memory(products):
    with pytest.raises(torch.OutOfMemoryError, match=r"expected 1\d+ bytes to be free for the workspace of a stream"):
        WORKSPACES.piece(0, 0).grow(10**15)
    check(multiply(products, SIZES), products)


def test_torch_gives_up_what_it_keeps_for_later(products):
    free, _ = torch.cuda.mem_get_info()
    kept = torch.empty(free * 9 // 10, dtype=torch.uint8, device="cuda")
    del kept
    piece = WORKSPACES.piece(0, 0)
    piece.grow(free // 2)
    assert piece.size == free // 2
    WORKSPACES.clear()
    torch.cuda.synchronize()
    assert torch.cuda.mem_get_info()[0] > free // 2
