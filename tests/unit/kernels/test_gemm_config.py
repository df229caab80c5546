"""The choice of `gemm`: every candidate covers its product once and fits the GPU, and the model's times make sense."""

from collections import Counter

import numpy as np
import pytest

from tests.unit import volume
from tlx_xdsl.kernels.gemm_config import (
    CONFIGS,
    LARGE,
    MEDIUM,
    SHARED_BYTES,
    TIMES,
    Choice,
    candidates,
    choose,
    choose_config,
    clusters_on,
    fit_output,
    predict,
    whole,
)


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
    dealt = choice.full_rounds * choice.programs if choice.streamed else tiles
    yield from ((tile % choice.programs, tile, 0, num_k) for tile in range(dealt))
    if choice.streamed:
        steps = (tiles - dealt) * num_k
        for program in range(choice.programs):
            at, end = (min(each * choice.share, steps) for each in (program, program + 1))
            while at < end:
                until = min(end, (at // num_k + 1) * num_k)
                yield program, dealt + at // num_k, at % num_k, at % num_k + until - at
                at = until


@pytest.mark.parametrize("processors", PROCESSORS)
def test_every_candidate_covers_all_steps_once(processors):
    for m, n, k in SHAPES[::4]:
        for choice in candidates(m, n, k, processors):
            config = choice.config
            assert config in CONFIGS.values()
            assert 1 <= choice.programs <= clusters_on(processors, config.cluster)
            tiles = config.tiles(n, m) if choice.swapped else config.tiles(m, n)
            num_k = -(-k // config.block_k)
            if tiles > 2000:
                continue
            done = list(pieces(choice, tiles, num_k))
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
    """With three mbarriers a stage, and one of a consumer for the second matrix; also where C is f32."""
    config = CONFIGS[name]
    barriers = (3 * config.stages + config.consumers) * 8
    for element_bytes in (2, 4):
        fitted = fit_output(config, element_bytes)
        assert fitted.shared_bytes() + barriers <= SHARED_BYTES
        assert fitted.part_n * element_bytes == config.part_n * 2
        assert fitted.block_n % fitted.part_n == fitted.tail_n % fitted.part_n == 0
    assert name in TIMES


def test_the_choice_is_the_first_of_all_candidates():
    """What is passed over would not have been chosen."""
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
