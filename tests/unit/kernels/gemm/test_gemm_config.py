"""The choice of `gemm`: every candidate covers its product once and fits the GPU, and the model's times make sense."""

from collections import Counter

import numpy as np
import pytest

from tests.unit import volume
from tlx_xdsl.kernels.gemm.config import CONFIGS, LARGE, MEDIUM, Choice, choose, choose_config
from tlx_xdsl.kernels.gemm.division import candidates, clusters_on, covers, whole
from tlx_xdsl.kernels.gemm.model import TIMES, predict
from tlx_xdsl.kernels.gemm.tiles import LEAST_RING, SHARED_BYTES, fit_output, for_split, for_sums, received_bytes

pytestmark = pytest.mark.quick


def drawn(count, most=16384):
    """Shapes whose logarithms are uniform; a third each of multiples of 64, of 8, and of any."""
    rng = np.random.default_rng(0)
    for index in range(count):
        sizes = np.exp(rng.uniform(0, np.log(most), 3)).astype(int)
        unit = (1, 8, 64)[index % 3]
        yield tuple(int(-(-size // unit) * unit) for size in sizes)


PROCESSORS = (1, 2, 7, 114, 132)
SHAPES = list(drawn(200 if volume.is_full() else 40))


def pieces(choice: Choice, tiles: int, num_k: int):
    """(program, tile, first step, the one after the last) of all that the programs do."""
    if choice.split > 1:
        for tile in range(tiles):
            for rank in range(choice.split):
                first = rank * choice.share
                yield tile * choice.split + rank, tile, first, min(first + choice.share, num_k)
        return
    dealt = choice.full_rounds * choice.programs if choice.streamed else tiles
    yield from ((tile % choice.programs, tile, 0, num_k) for tile in range(dealt))
    if choice.streamed:
        of_tile = choice.steps(tiles, num_k)
        steps = (tiles - dealt) * of_tile
        for program in range(choice.programs):
            at, end = (min(each * choice.share, steps) for each in (program, program + 1))
            while at < end:
                until = min(end, (at // of_tile + 1) * of_tile)
                first = at % of_tile
                yield program, dealt + at // of_tile, first, min(first + until - at, num_k)
                at = until


@pytest.mark.parametrize("processors", PROCESSORS)
def test_every_candidate_covers_all_steps_once(processors):
    for m, n, k in SHAPES[::4]:
        for choice in candidates(m, n, k, processors):
            config = choice.config
            assert config in CONFIGS.values()
            assert 1 <= choice.programs <= clusters_on(processors, config.cluster * choice.split)
            assert covers(choice, m, n, k)
            tiles = config.tiles(n, m) if choice.swapped else config.tiles(m, n)
            num_k = -(-k // config.block_k)
            if tiles > 2000:
                continue
            done = list(pieces(choice, tiles, num_k))
            assert all(first < last for _, _, first, last in done)
            ends = {(tile, first): last for _, tile, first, last in done}
            assert len(ends) == len(done)
            # From each piece's end the next one of its tile goes on, or the tile is complete.
            starts = Counter((tile, last) for (tile, _), last in ends.items())
            starts.update((tile, 0) for tile in range(tiles))
            starts.subtract((tile, num_k) for tile in range(tiles))
            assert +starts == Counter(ends.keys())
            # A program has slots for one piece that begins its tile and one that continues it.
            begun = Counter((program, first == 0) for program, _, first, last in done if last - first < num_k)
            assert not begun or max(begun.values()) == 1


@pytest.mark.parametrize("name", CONFIGS)
def test_tiles_fit_the_shared_memory(name):
    """Each stage has three mbarriers, and each consumer one for the second matrix; C may be f32."""
    config = CONFIGS[name]
    barriers = (3 * config.stages + config.consumers) * 8
    for element_bytes in (2, 4):
        fitted = fit_output(config, element_bytes)
        assert fitted.shared_bytes() + barriers <= SHARED_BYTES
        assert fitted.part_n * element_bytes == config.part_n * 2
        assert fitted.block_n % fitted.part_n == fitted.tail_n % fitted.part_n == 0
    assert name in TIMES


@pytest.mark.parametrize("name", [name for name, config in CONFIGS.items() if config.schedule == "cooperative"])
def test_what_clusters_and_sums_make_of_a_configuration_fits(name):
    """Two mbarriers a stage, and two of a consumer; parts are as even as their width allows."""
    config = CONFIGS[name]
    sums = for_sums(config)
    assert sums.shared_bytes() + (3 * sums.stages + sums.consumers) * 8 <= SHARED_BYTES
    assert sums.stages == config.stages or sums.buffers * sums.part_n == 2 * config.tile_n
    for split in range(2, 9):
        for element_bytes in (2, 4):
            changed = for_split(config, split, element_bytes)
            if changed is None:
                continue
            assert changed.stages <= config.stages
            assert changed.stages * changed.stage_bytes >= LEAST_RING
            parts = config.tile_n // changed.part_n
            assert changed.block_n % changed.part_n == changed.tail_n % changed.part_n == 0
            assert changed.buffers == -(-parts // split)
            stores = changed.buffers * config.block_m * changed.part_n * element_bytes
            room = changed.stages * changed.stage_bytes + received_bytes(changed, split) + stores
            assert room + (2 * changed.stages + 2 * changed.consumers) * 8 <= SHARED_BYTES


def test_parts_end_with_their_tiles_where_programs_suffice():
    """10 tiles of 100 steps on 132: 13 parts of 8 steps, the last of 4; not 7.6 of a sequence."""
    split = Choice(CONFIGS["128"], 130, share=8)
    assert (split.steps(10, 100), split.rest(10)) == (104, 10)
    stream = Choice(CONFIGS["128"], 126, share=8)
    assert stream.steps(10, 100) == 100


def test_one_program_of_a_cluster():
    """The launch waits for none where the GPU has fewer multiprocessors than a cluster has CTAs."""
    assert whole(CONFIGS["192 by 2"], 1000, 1000, 1).programs == 1


def test_the_choice_is_the_first_of_all_candidates():
    """The candidates that are passed over would not have been chosen."""
    for m, n, k in SHAPES:
        choice = choose(m, n, k)
        assert predict(choice, m, n, k) == min(predict(each, m, n, k) for each in candidates(m, n, k))


def test_the_choice_is_the_same_each_time():
    first = [choose(*shape) for shape in SHAPES]
    choose.cache_clear()
    assert [choose(*shape) for shape in SHAPES] == first


def test_times_are_positive_and_grow_with_k():
    for config in CONFIGS.values():
        for m, n in ((64, 64), (1000, 3000), (8192, 8192)):
            choice = whole(config, m, n, 132)
            times = [predict(choice, m, n, k) for k in (1, 64, 1000, 4096, 65536)]
            assert times[0] > 0
            assert times == sorted(times)
    # What is chosen for a longer sum takes longer, or almost: other tiles are ragged elsewhere.
    for m, n, _ in SHAPES:
        times = [predict(choose(m, n, k), m, n, k) for k in (64, 512, 4096, 32768)]
        assert times == sorted(times)


def test_named_shapes():
    assert choose(4096, 4096, 4096).config is LARGE
    assert choose(8192, 8192, 512).config is MEDIUM
    assert choose(2560, 2560, 2560).streamed
    assert choose(192, 320, 7040).split > 1
    few = choose(16, 8192, 8192)
    assert (few.swapped, few.config.tile_n) == (True, 16)
    assert choose(8192, 16, 8192).config.tile_n == 16


def test_the_configuration_alone():
    assert choose_config(4096, 4096, 4096) is LARGE
    assert choose_config(2560, 2560, 2560) is choose(2560, 2560, 2560).config


def test_choices_depend_on_the_multiprocessors():
    """One round of large tiles on 132 becomes two on 100."""
    assert choose(2048, 2048, 2048, 132).config is LARGE
    assert choose(2048, 2048, 2048, 100) != choose(2048, 2048, 2048, 132)
    assert choose(1, 1, 1, 1).programs == 1
