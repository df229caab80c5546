"""Layouts drawn at random, with shapes that stock Triton takes them for; one generator per family."""

import random
from collections.abc import Callable

from tlx_xdsl.layouts.encodings import (
    Bases,
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    GenericLinearLayout,
    Ints,
    Layout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)

Case = tuple[Layout, Ints]


def power(rng: random.Random, low: int, high: int) -> int:
    """A power of two from `low` to `high`."""
    return 1 << rng.randint(low.bit_length() - 1, high.bit_length() - 1)


def deal(rng: random.Random, total: int, rank: int) -> Ints:
    """`total` as a product of `rank` powers of two."""
    sizes = [1] * rank
    while total > 1:
        sizes[rng.randrange(rank)] *= 2
        total //= 2
    return tuple(sizes)


def shape_of(rng: random.Random, rank: int, most: int = 1 << 14) -> Ints:
    return deal(rng, power(rng, 1, most), rank)


def shuffled(rng: random.Random, rank: int) -> Ints:
    return tuple(rng.sample(range(rank), rank))


def cga_of(rng: random.Random, shape: Ints) -> Bases:
    """CTAs that split or copy a tensor of `shape`; half of the time one CTA."""
    if rng.random() < 0.5:
        return ()
    split = [1] * len(shape)
    bases: list[Ints] = []
    for _ in range(rng.randint(1, 3)):
        basis = [0] * len(shape)
        dim = rng.randrange(len(shape))
        if rng.random() < 0.8 and split[dim] < shape[dim]:
            basis[dim] = split[dim]
            split[dim] *= 2
        bases.append(tuple(basis))
    return tuple(bases)


def blocked(rng: random.Random) -> Case:
    rank = rng.randint(1, 4)
    shape = shape_of(rng, rank)
    return blocked_for(rng, shape), shape


def blocked_for(rng: random.Random, shape: Ints, cga: Bases | None = None) -> BlockedLayout:
    rank = len(shape)
    return BlockedLayout(
        deal(rng, power(rng, 1, 16), rank),
        deal(rng, 32, rank),
        deal(rng, power(rng, 1, 8), rank),
        shuffled(rng, rank),
        cga_of(rng, shape) if cga is None else cga,
    )


def slice_(rng: random.Random) -> Case:
    parent, shape = rng.choice([blocked, blocked, nvidia_mma, dot_op, linear, slice_])(rng)
    if len(shape) == 1:
        return slice_(rng)
    dim = rng.randrange(len(shape))
    return SliceLayout(dim, parent), shape[:dim] + shape[dim + 1 :]


def nvidia_mma(rng: random.Random) -> Case:
    return rng.choice([mma_sync, wgmma])(rng)


def mma_sync(rng: random.Random) -> Case:
    rank = rng.choice([2, 2, 3])
    shape = shape_of(rng, rank)
    warps = deal(rng, power(rng, 1, 8), rank)
    # Eight rows are those of f64.
    tile = (8 if rng.random() < 0.2 else 16, 8)
    return NvidiaMmaLayout(2, 0, warps, cga_of(rng, shape), tile if rank == 2 else (1, *tile)), shape


def wgmma(rng: random.Random) -> Case:
    shape = (power(rng, 64, 256), power(rng, 8, 256))
    warps = rng.choice([(4, 1), (8, 1), (4, 2), (16, 1)])
    return NvidiaMmaLayout(
        3, 0, warps, cga_of(rng, shape), (16, power(rng, 8, shape[1]), rng.choice([8, 16, 32]))
    ), shape


def dot_op(rng: random.Random) -> Case:
    return rng.choice([dot_op_mma, dot_op_mma, dot_op_wgmma, dot_op_blocked])(rng)


def dot_op_mma(rng: random.Random) -> Case:
    parent, shape = mma_sync(rng)
    assert isinstance(parent, NvidiaMmaLayout)
    k_width = 1 if parent.instr_shape[-2] == 8 else power(rng, 1, 8)
    return DotOperandLayout(rng.randint(0, 1), parent, k_width), shape


def dot_op_wgmma(rng: random.Random) -> Case:
    parent, shape = wgmma(rng)
    return DotOperandLayout(0, parent, power(rng, 1, 4)), shape


def dot_op_blocked(rng: random.Random) -> Case:
    shape = shape_of(rng, rng.randint(2, 3))
    return DotOperandLayout(rng.randint(0, 1), blocked_for(rng, shape)), shape


def linear(rng: random.Random) -> Case:
    rank = rng.randint(1, 3)
    spanned = deal(rng, power(rng, 32, 1 << 12), rank)
    units = units_of(spanned)
    rng.shuffle(units)
    zero = (0,) * rank
    # Some copies, in lanes, warps, CTAs or registers.
    lane = tuple(units.pop() if units and rng.random() < 0.9 else zero for _ in range(5))
    warp = tuple(units.pop() if units and rng.random() < 0.8 else zero for _ in range(rng.randint(0, 3)))
    block = tuple(units.pop() if units and rng.random() < 0.8 else zero for _ in range(rng.choice([0, 0, 1, 2])))
    register = list(units)
    if rng.random() < 0.2:
        register.insert(rng.randint(0, len(register)), zero)
    layout = DistributedLinearLayout(tuple(register), lane, warp, block)
    # The same, larger or smaller than the layout.
    factor = rng.choice([1, 2, 4, 0.5])
    dim = rng.randrange(rank)
    return layout, tuple(max(1, int(size * factor)) if d == dim else size for d, size in enumerate(spanned))


def generic_linear(rng: random.Random) -> Case:
    """Warps that move along two dimensions at once, and copies."""
    while True:
        layout, shape = linear(rng)
        assert isinstance(layout, DistributedLinearLayout)
        if len(shape) == 2 and len(layout.warp) > 0 and not layout.block:
            break
    bases = (*layout.register, *layout.lane)
    spare = [basis for basis in bases if any(basis)]
    warp = tuple(add(basis, rng.choice(spare)) if spare and rng.random() < 0.6 else basis for basis in layout.warp)
    tops = [max(column).bit_length() for column in zip(*bases, *layout.warp, strict=True)]
    shape = tuple(1 << top for top in tops)
    return GenericLinearLayout(layout.register, layout.lane, warp, ()), shape


def add(basis: Ints, other: Ints) -> Ints:
    return tuple(a ^ b for a, b in zip(basis, other, strict=True))


def units_of(shape: Ints) -> list[Ints]:
    """The bases of an identity, dimension by dimension."""
    return [
        tuple(1 << bit if other == dim else 0 for other in range(len(shape)))
        for dim, size in enumerate(shape)
        for bit in range(size.bit_length() - 1)
    ]


def swizzled_shared(rng: random.Random) -> Case:
    rank = rng.randint(1, 4)
    # At least two elements for each of up to eight CTAs: stock cannot spell out a layout without offsets.
    shape = deal(rng, power(rng, 16, 1 << 14), rank)
    vec, per_phase, max_phase = power(rng, 1, 8), power(rng, 1, 4), power(rng, 1, 8)
    return SwizzledSharedLayout(vec, per_phase, max_phase, shuffled(rng, rank), cga_of(rng, shape)), shape


def nvmma_shared(rng: random.Random) -> Case:
    """Buffers that a CTA's part fills with whole swizzle tiles, some larger than one TMA copy."""
    width = rng.choice([0, 32, 64, 128, 128])
    element_bits = rng.choice([8, 16, 32])
    fp4 = element_bits == 8 and width == 128 and rng.random() < 0.5
    rank = rng.choice([2, 2, 2, 3, 4] if width else [1, 2, 2, 3])
    transposed = rng.random() < 0.5 and (width > 0 or rank == 2)
    row = (8 * width // element_bits >> fp4) or power(rng, 1, 64)
    contiguous = 0 if transposed else rank - 1
    part = [power(rng, 1, 4) for _ in range(rank)]
    part[contiguous] = row * power(rng, 1, 4)
    if rank > 1:
        # Triton counts only the last dimension as rows of a transposed layout.
        part[rank - 1 if transposed else rank - 2] = power(rng, 8, 512 if rng.random() < 0.2 else 64)
    cga: list[Ints] = []
    if rng.random() < 0.4:
        dim = rng.randrange(rank)
        part[dim] *= 2
        cga.append(tuple(int(d == dim) for d in range(rank)))
        if rng.random() < 0.3:
            cga.append((0,) * rank)
    return NvmmaSharedLayout(width, transposed, element_bits, fp4, rank, tuple(cga)), tuple(part)


def spelled_out_offsets(rng: random.Random, rank: int) -> tuple[list[Ints], Bases, Ints]:
    shape = deal(rng, power(rng, 2, 1 << 10), rank)
    units = units_of(shape)
    # The upper half of the last dimension belongs to another CTA.
    block = (units.pop(),) if len(units) > 1 and rng.random() < 0.3 else ()
    rng.shuffle(units)
    return units, block, shape


def padded_shared(rng: random.Random) -> Case:
    offset, block, shape = spelled_out_offsets(rng, rng.randint(1, 3))
    intervals = tuple(rng.sample([2, 4, 8, 16, 32, 64], rng.randint(1, 3)))
    return PaddedSharedLayout(intervals, tuple(power(rng, 1, 8) for _ in intervals), tuple(offset), block), shape


def shared_linear(rng: random.Random) -> Case:
    """A permutation of the offsets, with earlier bases added to later ones (swizzles)."""
    offset, block, shape = spelled_out_offsets(rng, rng.randint(1, 3))
    for index in range(1, len(offset)):
        if rng.random() < 0.5:
            offset[index] = add(offset[index], offset[rng.randrange(index)])
    return SharedLinearLayout(tuple(offset), block, alignment=power(rng, 16, 1024)), shape


def tensor_memory(rng: random.Random) -> Case:
    block_m = rng.choice([64, 128])
    block_n = power(rng, 2, 128)
    shape = [block_m * rng.choice([1, 1, 2]), block_n * rng.choice([1, 1, 2, 4])]
    if rng.random() < 0.1:
        shape[1] = max(2, block_n // 2)
    cga: list[Ints] = []
    two_ctas = rng.random() < 0.3
    if two_ctas or rng.random() < 0.3:
        shape[0] *= 2
        cga.append((1, 0))
    if rng.random() < 0.2:
        shape[1] *= 2
        cga.append((0, 1))
    fp4 = block_m == 128 and rng.random() < 0.1
    stride = 1 if fp4 else rng.choice([1, 1, 2, 4])
    return TensorMemoryLayout(block_m, block_n, stride, tuple(cga), two_ctas, fp4), tuple(shape)


def tensor_memory_scales(rng: random.Random) -> Case:
    shape = [power(rng, 16, 512), power(rng, 1, 32)]
    cga: Bases = rng.choice([(), (), ((1, 0),), ((0, 1),), ((0, 0),)])
    return TensorMemoryScalesLayout(cga, rng.choice(["mnThenK", "kThenMn"])), tuple(shape)


FAMILIES: dict[str, Callable[[random.Random], Case]] = {
    "blocked": blocked,
    "slice": slice_,
    "mma v2": mma_sync,
    "mma v3": wgmma,
    "dot_op of mma v2": dot_op_mma,
    "dot_op of mma v3": dot_op_wgmma,
    "dot_op of blocked": dot_op_blocked,
    "linear": linear,
    "generic_linear": generic_linear,
    "swizzled_shared": swizzled_shared,
    "nvmma_shared": nvmma_shared,
    "padded_shared": padded_shared,
    "shared_linear": shared_linear,
    "tensor_memory": tensor_memory,
    "tensor_memory_scales": tensor_memory_scales,
}


IN_REGISTERS = [name for name in FAMILIES if name in "blocked slice linear generic_linear" or " " in name]
IN_SHARED_MEMORY = [name for name in FAMILIES if "shared" in name]


def draw(family: str, count: int) -> list[Case]:
    """The same cases in every run."""
    rng = random.Random(f"layouts: {family}")
    return [FAMILIES[family](rng) for _ in range(count)]
