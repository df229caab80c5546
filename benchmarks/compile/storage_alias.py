"""Time of the storage alias passes against the number of aliased buffers: it should be linear.

    python benchmarks/compile/storage_alias.py [--sizes 10 100 1000]

Every buffer array is indexed ten times. `regions of five` spreads the arrays over regions like those of a kernel (a
tile that shares its memory with four others, which lie side by side); `one region` puts all of them into one, side by
side. Times are processor time, the best of three, in microseconds per index; a ratio of 1 between two rows is exactly
linear. The garbage collector is off, as in `timeit`: it walks all objects that are alive, and would add more to the
larger modules. Parsing is shown beside for scale.
"""

import argparse
import gc
import sys
import time
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from xdsl.context import Context

from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass

INDICES = 10
HEADER = """
#l = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!t = !ttg.memdesc<2x16x64xf16, #l, #smem, mutable>
!e = !ttg.memdesc<16x64xf16, #l, #smem, mutable>
!s = !tlx.storage_alias_spec<smem>
!shared = !tlx.reuse_group<shared>
!distinct = !tlx.reuse_group<distinct>
tt.func @k(%i: i32) {
"""
EACH_STEP = (StorageAliasLoweringPass(), RewriteLocalAliasPass())


def group(name, members, types, kind):
    return f"%{name} = tlx.reuse_group({', '.join(members)}) group_kind = {kind} : ({', '.join(types)}) -> !{kind}"


def text_of(arrays, region_size):
    lines = []
    for region in range(arrays // region_size):
        names = [f"%b{region}x{number}" for number in range(region_size)]
        lines.append(f"%s{region} = tlx.storage_alias_spec storage = smem : !s")
        lines += [f"{name} = tlx.storage_alias_local_alloc %s{region} : !s -> !t" for name in names]
        side_by_side = group(f"d{region}", names[1:], ["!t"] * (region_size - 1), "distinct")
        lines += [side_by_side, group(f"g{region}", [names[0], f"%d{region}"], ["!t", "!distinct"], "shared")]
        lines.append(f"tlx.set_buffer_overlap(%s{region}, %g{region}) : (!s, !shared) -> ()")
        lines += [
            f"{name}v{number} = ttg.memdesc_index {name}[%i] : !t -> !e" for name in names for number in range(INDICES)
        ]
    return HEADER + "\n".join(lines) + "\ntt.return\n}\n"


def best_of_three(text):
    """Seconds for parsing and for each step, each the best of three."""
    rounds = []
    for _ in range(3):
        gc.collect()
        marks = [time.process_time()]
        module = parse_module(text)
        marks.append(time.process_time())
        for step in EACH_STEP:
            step.apply(Context(), module)
            marks.append(time.process_time())
        rounds.append([after - before for before, after in pairwise(marks)])
    return [min(times) for times in zip(*rounds, strict=True)]


def table(title, sizes, region_size_of):
    names = ["parse", *(step.name for step in EACH_STEP)]
    print(f"{title:<16}{'arrays':>8}{'indices':>9}" + "".join(f"{name:>28}{'ratio':>7}" for name in names))
    before = None
    for arrays in sizes:
        indices = arrays * INDICES
        costs = [1e6 * seconds / indices for seconds in best_of_three(text_of(arrays, region_size_of(arrays)))]
        ratios = [
            "" if before is None else f"{cost / last:.2f}" for cost, last in zip(costs, before or costs, strict=True)
        ]
        columns = "".join(f"{cost:>28.2f}{ratio:>7}" for cost, ratio in zip(costs, ratios, strict=True))
        print(f"{'':<16}{arrays:>8}{indices:>9}{columns}")
        before = costs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000], help="multiples of 5")
    sizes = parser.parse_args().sizes
    gc.disable()
    print("microseconds per index")
    table("regions of five", sizes, lambda arrays: 5)
    table("one region", sizes, lambda arrays: arrays)


if __name__ == "__main__":
    main()
