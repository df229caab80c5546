"""The algebra of linear layouts: examples, and the laws that its docstrings state."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from tests.unit.layouts.definitions import compose, invert
from tlx_xdsl.layouts.f2 import Elimination, bits_of, image
from tlx_xdsl.layouts.linear_layout import LinearLayout, log2, pack, unpack

pytestmark = pytest.mark.quick

EXAMPLE = LinearLayout.from_bases({"register": [(0, 1)], "lane": [(0, 2), (0, 4), (1, 0)]}, {"dim0": 2, "dim1": 8})


@st.composite
def dims(draw: st.DrawFn, names: str, most_bits: int = 3) -> tuple[tuple[str, int], ...]:
    return tuple((name, 1 << draw(st.integers(0, most_bits))) for name in names)


@st.composite
def layouts(
    draw: st.DrawFn,
    ins: tuple[tuple[str, int], ...] | None = None,
    outs: tuple[tuple[str, int], ...] | None = None,
) -> LinearLayout:
    ins = draw(dims("ab")) if ins is None else ins
    outs = draw(dims("xy")) if outs is None else outs
    limit = 1 << sum(log2(size) for _, size in outs)
    basis = st.integers(0, limit - 1)
    return LinearLayout(
        tuple((name, tuple(draw(st.lists(basis, min_size=log2(n), max_size=log2(n))))) for name, n in ins), outs
    )


@st.composite
def bijections(draw: st.DrawFn, outs: tuple[tuple[str, int], ...] | None = None) -> LinearLayout:
    """A permutation of the bits, with earlier bases added to later ones."""
    outs = draw(dims("xyz", 2)) if outs is None else outs
    count = sum(log2(size) for _, size in outs)
    columns = [1 << bit for bit in draw(st.permutations(range(count)))]
    for later in range(1, count):
        for earlier in draw(st.sets(st.integers(0, later - 1))):
            columns[later] ^= columns[earlier]
    cut = draw(st.integers(0, count))
    return LinearLayout((("a", tuple(columns[:cut])), ("b", tuple(columns[cut:]))), outs)


def every_index(layout: LinearLayout) -> list[dict[str, int]]:
    grids = np.indices(tuple(layout.in_sizes.values())).reshape(len(layout.ins), -1)
    return [dict(zip(layout.in_names, map(int, index), strict=True)) for index in grids.T]


def identity(dims: dict[str, int]) -> LinearLayout:
    result = LinearLayout.empty()
    for name, size in dims.items():
        result *= LinearLayout.identity_1d(size, name, name)
    return result


class TestExample:
    def test_an_index_is_the_sum_of_its_bits(self):
        assert EXAMPLE.apply({"register": 1, "lane": 5}) == {"dim0": 1, "dim1": 3}

    def test_text(self):
        assert str(EXAMPLE) == "register: (0, 1)\nlane: (0, 2) (0, 4) (1, 0)\n-> dim0: 2, dim1: 8"
        assert str(LinearLayout.zeros_1d(1, "block", "dim0")) == "block:\n-> dim0: 1"

    def test_it_is_hashable(self):
        same = LinearLayout.from_bases(EXAMPLE.bases, EXAMPLE.out_sizes)
        assert same == EXAMPLE
        assert len({same, EXAMPLE}) == 1

    def test_sizes_that_the_bases_need(self):
        assert LinearLayout.from_bases(EXAMPLE.bases, ["dim0", "dim1"]) == EXAMPLE
        assert LinearLayout.from_bases({"lane": []}, ["dim0"]).out_sizes == {"dim0": 1}

    def test_order_of_dimensions_counts(self):
        turned = EXAMPLE.transpose_outs(["dim1", "dim0"])
        assert turned != EXAMPLE
        assert turned.bases_of("lane") == ((2, 0), (4, 0), (0, 1))

    def test_reshape(self):
        flat = EXAMPLE.reshape_ins([("register", 16)]).reshape_outs([("element", 16)])
        assert flat.bases == {"register": ((2,), (4,), (8,), (1,))}
        assert flat.reshape_ins([("register", 2), ("lane", 8)]).reshape_outs(EXAMPLE.outs) == EXAMPLE

    def test_parts(self):
        assert EXAMPLE.sublayout(["lane"], ["dim1"]).bases == {"lane": ((2,), (4,), (0,))}
        assert EXAMPLE.sublayout(["lane"], ["dim1"]).without_zero_bases("lane").bases == {"lane": ((2,), (4,))}

    def test_a_product_puts_the_right_factor_on_top(self):
        tile = LinearLayout.identity_1d(4, "lane", "dim0") * LinearLayout.identity_1d(2, "lane", "dim1")
        assert tile * LinearLayout.identity_1d(2, "warp", "dim0") == LinearLayout.from_bases(
            {"lane": [(1, 0), (2, 0), (0, 1)], "warp": [(4, 0)]}, {"dim0": 8, "dim1": 2}
        )

    def test_free_variables(self):
        copies = LinearLayout.from_bases({"lane": [(1,), (0,), (2,)], "warp": [(3,), (4,)]}, ["dim0"])
        assert copies.free_variables() == {"lane": 0b010, "warp": 0b01}
        assert copies.is_surjective()
        assert not copies.is_injective()

    def test_trivial_dimensions(self):
        padded = EXAMPLE * LinearLayout.zeros_1d(1, "block", "dim2")
        assert padded != EXAMPLE
        assert padded.equal_ignoring_trivial(EXAMPLE)
        assert not padded.equal_ignoring_trivial(EXAMPLE.transpose_outs(["dim1", "dim0"]))


class TestErrors:
    def test_sizes(self):
        with pytest.raises(ValueError, match="expected a power of two, got 3"):
            LinearLayout.identity_1d(3, "lane", "dim0")

    def test_names(self):
        with pytest.raises(ValueError, match="dimension named twice: dim0, dim0"):
            LinearLayout((), (("dim0", 1), ("dim0", 2)))

    def test_bases(self):
        with pytest.raises(ValueError, match="a basis of 'lane' leaves the output of 2 elements"):
            LinearLayout((("lane", (2,)),), (("dim0", 2),))
        with pytest.raises(ValueError, match="coordinate 2 of 'dim0' is not below 2"):
            LinearLayout.from_bases({"lane": [(2,)]}, {"dim0": 2})
        with pytest.raises(ValueError, match=r"expected 1 coordinates, got \(0, 1\)"):
            LinearLayout.from_bases({"lane": [(0, 1)]}, {"dim0": 2})

    def test_indices(self):
        with pytest.raises(ValueError, match="expected indices for register, lane, got lane"):
            EXAMPLE.apply({"lane": 0})
        with pytest.raises(ValueError, match="index 8 of 'lane' is not below 8"):
            EXAMPLE.apply({"register": 0, "lane": 8})

    def test_composition(self):
        with pytest.raises(ValueError, match="are not the inputs"):
            compose(EXAMPLE, EXAMPLE)
        with pytest.raises(ValueError, match="'x' has size 4, the outer layout takes 2"):
            compose(LinearLayout.identity_1d(4, "a", "x"), LinearLayout.identity_1d(2, "x", "y"))

    def test_inverse(self):
        with pytest.raises(ValueError, match="not injective"):
            invert(LinearLayout.zeros_1d(2, "lane", "dim0"))
        with pytest.raises(ValueError, match=r"element \(1,\) has no holder in\nlane:"):
            LinearLayout.from_bases({"lane": []}, {"dim0": 2}).right_inverse()
        with pytest.raises(ValueError, match="layouts of different outputs"):
            EXAMPLE.invert_and_compose(LinearLayout.identity_1d(2, "lane", "dim0"))

    def test_shape(self):
        with pytest.raises(ValueError, match="in some order"):
            EXAMPLE.transpose_outs(["dim0"])
        with pytest.raises(ValueError, match="cannot reshape inputs"):
            EXAMPLE.reshape_ins([("lane", 4)])
        with pytest.raises(ValueError, match="cannot reshape outputs"):
            EXAMPLE.reshape_outs([("dim0", 4)])


class TestLaws:
    @given(layouts())
    def test_linearity(self, layout: LinearLayout):
        for index in every_index(layout)[:16]:
            for other in every_index(layout)[:16]:
                both = layout.apply({name: index[name] ^ other[name] for name in index})
                x, y = layout.apply(index), layout.apply(other)
                assert both == {name: x[name] ^ y[name] for name in x}

    @given(layouts())
    def test_arrays(self, layout: LinearLayout):
        indices = every_index(layout)
        arrays = layout.apply_array({name: np.array([index[name] for index in indices]) for name in layout.in_names})
        one_by_one = [layout.apply(index) for index in indices]
        for name in layout.out_names:
            assert arrays[name].tolist() == [place[name] for place in one_by_one]

    @given(layouts())
    def test_arrays_are_broadcast(self, layout: LinearLayout):
        sizes = tuple(layout.in_sizes.values())
        grids = dict(zip(layout.in_names, np.indices(sizes, sparse=True), strict=True))
        assert all(array.shape == sizes for array in layout.apply_array(grids).values())

    @given(layouts())
    def test_bases_determine_the_layout(self, layout: LinearLayout):
        assert LinearLayout.from_bases(layout.bases, layout.out_sizes) == layout

    @given(st.data())
    def test_composition(self, data: st.DataObject):
        inner = data.draw(layouts())
        outer = data.draw(layouts(ins=inner.outs, outs=data.draw(dims("uv"))))
        both = compose(inner, outer)
        for index in every_index(inner):
            assert both.apply(index) == outer.apply(inner.apply(index))

    @given(st.data())
    def test_composition_is_associative(self, data: st.DataObject):
        f = data.draw(layouts())
        g = data.draw(layouts(ins=f.outs, outs=data.draw(dims("uv"))))
        h = data.draw(layouts(ins=g.outs, outs=data.draw(dims("pq"))))
        assert compose(compose(f, g), h) == compose(f, compose(g, h))

    @given(layouts(), layouts())
    def test_product(self, low: LinearLayout, high: LinearLayout):
        product = low * high
        for index in every_index(low)[:8]:
            for other in every_index(high)[:8]:
                together = {name: index[name] + low.in_sizes[name] * other[name] for name in index}
                x, y = low.apply(index), high.apply(other)
                assert product.apply(together) == {name: x[name] + low.out_sizes[name] * y[name] for name in x}

    @given(layouts(), layouts(), layouts())
    def test_product_is_associative(self, f: LinearLayout, g: LinearLayout, h: LinearLayout):
        assert (f * g) * h == f * (g * h)
        assert LinearLayout.empty() * f == f == f * LinearLayout.empty()

    @given(bijections())
    def test_inverse(self, layout: LinearLayout):
        assert layout.in_bits == layout.out_bits == layout.rank
        inverse = invert(layout)
        assert compose(layout, inverse) == identity(layout.in_sizes)
        assert compose(inverse, layout) == identity(layout.out_sizes)
        assert invert(inverse) == layout

    @given(layouts())
    def test_right_inverse(self, layout: LinearLayout):
        assume(layout.is_surjective())
        inverse = layout.right_inverse()
        assert compose(inverse, layout) == identity(layout.out_sizes)
        free = layout.free_variables()
        for index in every_index(inverse):
            assert all(place & free[name] == 0 for name, place in inverse.apply(index).items())

    @given(st.data())
    def test_conversion_between_layouts(self, data: st.DataObject):
        f = data.draw(layouts())
        g = data.draw(layouts(ins=data.draw(dims("cd")), outs=f.outs))
        assume(g.is_surjective())
        assert compose(f.invert_and_compose(g), g) == f

    @given(st.data())
    def test_conversion_between_bijections(self, data: st.DataObject):
        f = data.draw(bijections())
        g = data.draw(bijections(f.outs))
        assert f.invert_and_compose(g) == compose(f, invert(g))

    @given(layouts())
    def test_copies(self, layout: LinearLayout):
        free = sum(mask.bit_count() for mask in layout.free_variables().values())
        holders = {tuple(layout.apply(index).values()) for index in every_index(layout)}
        assert len(holders) == 1 << layout.rank == 1 << (layout.in_bits - free)
        assert layout.is_surjective() == (len(holders) == 1 << layout.out_bits)
        assert layout.is_injective() == (free == 0)

    @given(layouts())
    def test_transpositions_undo_themselves(self, layout: LinearLayout):
        assert layout.transpose_outs("yx").transpose_outs("xy") == layout

    @given(layouts())
    def test_flattening_keeps_the_bits(self, layout: LinearLayout):
        flat = layout.reshape_ins([("all", 1 << layout.in_bits)]).reshape_outs([("element", 1 << layout.out_bits)])
        assert flat.reshape_ins(tuple(layout.in_sizes.items())).reshape_outs(layout.outs) == layout


class TestF2:
    @given(st.lists(st.integers(0, 255), max_size=12), st.integers(0, 255))
    def test_solutions(self, columns: list[int], vector: int):
        elimination = Elimination.of(columns)
        reachable = {image(columns, chosen) for chosen in range(1 << len(columns))}
        solution = elimination.solve(vector)
        assert (solution is not None) == (vector in reachable)
        if solution is not None:
            assert image(columns, solution) == vector
            assert solution & elimination.free == 0
        assert len(reachable) == 1 << elimination.rank

    def test_bits(self):
        assert list(bits_of(0b1010)) == [1, 3]

    def test_packing(self):
        dims = (("x", 4), ("y", 1), ("z", 8))
        assert pack((3, 0, 5), dims) == 0b10111
        assert unpack(0b10111, dims) == (3, 0, 5)
