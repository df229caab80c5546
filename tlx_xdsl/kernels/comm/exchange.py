"""An all-to-all for experts: `Exchange(ranks, ...)`, with `dispatch(x, experts)` and `combine(y, weights)`.

    exchange = comm.Exchange(ranks, tokens=4096, width=7168, choices=8, experts=32, like=x)
    received = exchange.dispatch(x, experts)        # rows of all ranks for the 32 experts of this one
    y = run_experts(received.rows, received.numbers, received.counts)
    out = exchange.combine(y, weights)

What is received lies in memory that the other ranks write: it is valid until this rank's next `dispatch`. The kernels,
and what is summed where, are in `experts`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tlx_xdsl.runtime.ranks.engine import Ranks

from ..calls.launching import Launch, multiprocessors
from ..calls.operands import Operand, check_contiguous, check_shape, check_types, empty, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from . import experts as _experts
from .launches import call, here, launch_on, local, operands_of, pads_of, results, values_of

kernels: Any = _experts

DTYPES = ("bf16", "fp16", "fp32")

_BLOCK = 1024
"""Elements of a row that a program copies at a time, at most."""

_ROUTED = 1024
"""Assignments that are numbered at a time, at most."""


class Received(NamedTuple):
    """Rows that a rank has received, or a list of each of these with simulated ranks.

    rows: (world, tokens * choices, width): the rows of each rank, of which the first `counts` are there.
    numbers: (world, tokens * choices), int32: the expert of each row, counted from the rank's first one.
    counts: (world,), int32.
    """

    rows: Any
    numbers: Any
    counts: Any


class Exchange:
    """The memory and the kernels of an all-to-all of one shape. All ranks make it, and call it, in one order.

    `tokens` are rows of each rank, of `width` elements of the type of `like`, a tensor of this rank (a list of arrays
    with simulated ranks); each has `choices` experts, of which every rank has `experts`. Memory on each rank:
    2 * world * tokens * choices rows, since all ranks may choose one.
    """

    def __init__(self, ranks: Ranks, *, tokens: int, width: int, choices: int, experts: int, like: Any):
        first = operand("Exchange", "like", values_of(ranks, "Exchange", "like", like)[0])
        check_types((first,), DTYPES)
        if ranks.world_size < 2:
            raise ValueError(f"Exchange: argument 'ranks': expected at least 2 ranks, got {ranks.world_size}")
        self.ranks, self.tokens, self.width, self.choices, self.experts = ranks, tokens, width, choices, experts
        self.capacity = tokens * choices
        self.programs = min(self.capacity, multiprocessors(first))
        world, dtype = ranks.world_size, first.value.dtype
        int32 = self._int32(first)
        self.rows = ranks.allocate((world, self.capacity, width), dtype)
        self.back = ranks.allocate((world, self.capacity, width), dtype)
        self.numbers = ranks.allocate((world, self.capacity), int32)
        self.arrived = ranks.allocate((world,), int32)
        programs = self.programs

        def source_of(signal: int) -> int:
            return signal if signal < world else signal // programs % world

        # Signals of launches that begin, and then those of programs, in the second phase.
        self.pads = pads_of(ranks, "Exchange.dispatch", max(world, 2 * world * programs), source_of)
        self.return_pads = pads_of(ranks, "Exchange.combine", 2 * world, lambda signal: signal % world)
        made = [operand("Exchange", "like", each) for each in values_of(ranks, "Exchange", "like", like)]
        self.places = here(ranks, [empty(each, (self.capacity,), "i32") for each in made])
        self._owners = 1 << (world - 1).bit_length()
        self._counts = [empty(each, (self._owners,), "i32") for each in made]
        self.last: Any = None
        """The experts of the last `dispatch`."""

    @staticmethod
    def _int32(first: Operand) -> Any:
        return empty(first, (1,), "i32").dtype

    def dispatch(self, x: Any, experts: Any) -> Received:
        """Send the rows of `x` (tokens, width) to the ranks of their `experts` (tokens, choices), int32.

        Expert e is on rank e // experts of a rank. Raises TypeError for types, ValueError for shapes.
        """
        self.last = experts
        call(DISPATCH, self.ranks, (x, experts, self.places), (self,))
        found = (here(self.ranks, local(self.ranks, each)) for each in (self.rows, self.numbers, self.arrived))
        return Received(*found)

    def combine(self, y: Any, weights: Any, out: Any = None) -> Any:
        """Return the sums of the experts' results for each token of the last `dispatch`, times `weights`.

        `y` lies as the rows that were received; `weights` is (tokens, choices), of any type of float; the result is
        (tokens, width). Raises as `dispatch`, and RuntimeError before one.
        """
        if self.last is None:
            raise RuntimeError("Exchange.combine: expected a dispatch before")
        return call(COMBINE, self.ranks, (y, weights, self.last, self.places, out), (self,))

    def _sizes(self) -> dict[str, Any]:
        return {"width": self.width, "capacity": self.capacity}

    def _constants(self) -> dict[str, Any]:
        block = min(_BLOCK, 1 << (self.width - 1).bit_length())
        return {"EXPERTS": self.experts, "CHOICES": self.choices, "BLOCK": block}

    def _aligned(self, *tensors: str) -> tuple[str, ...]:
        return (*tensors, "width") if self.width % 16 == 0 else ()


def _checked(
    exchange: Exchange, name: str, given: Any, shape: tuple[int, ...], types: tuple[str, ...]
) -> list[Operand]:
    found = operands_of(exchange.ranks, "Exchange", name, given)
    check_types(found, types)
    check_shape(found[0], shape, "that of the exchange")
    check_contiguous(found[0])
    return found


def _prepare_dispatch(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, experts, places = tensors
    ranks, exchange = options
    rows = _checked(exchange, "x", x, (exchange.tokens, exchange.width), DTYPES)
    chosen = _checked(exchange, "experts", experts, (exchange.tokens, exchange.choices), ("i32",))
    numbered = [each.value for each in operands_of(ranks, "Exchange", "places", places)]
    chosen_values = [each.value for each in chosen]
    found = {"x": x, "experts": experts, "places": places, "counts": here(ranks, exchange._counts)}
    sources = {name: name for name in found}
    shared = {"assignments": exchange.capacity}
    number: Launch = launch_on(
        ranks, kernels.route, 1, {"experts": chosen_values, "places": numbered, "counts": exchange._counts}, shared,
        {"EXPERTS": exchange.experts, "WORLD": exchange._owners, "BLOCK": _ROUTED}, rows[0], sources,
    )  # fmt: skip
    memory = {"rows": exchange.rows, "numbers": exchange.numbers, "arrived": exchange.arrived, "pads": exchange.pads}
    send = launch_on(
        ranks, kernels.dispatch, exchange.programs,
        {
            "x": rows, "experts": chosen_values, "places": numbered,
            "counts": exchange._counts,
        },
        {**shared, **memory, **exchange._sizes()}, exchange._constants(), rows[0], sources,
        aligned=exchange._aligned("x"),
    )  # fmt: skip
    return Prepared(found, (number, send))


def _prepare_combine(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    y, weights, experts, places, out = tensors
    ranks, exchange = options
    given = _checked(exchange, "y", y, (ranks.world_size, exchange.capacity, exchange.width), DTYPES)
    factors = _checked(exchange, "weights", weights, (exchange.tokens, exchange.choices), DTYPES)
    made = results(given, out, ranks, (exchange.tokens, exchange.width))
    check_contiguous(made[0])
    found = {
        "y": y, "weights": weights, "experts": experts, "places": places,
        "out": here(ranks, [each.value for each in made]),
    }  # fmt: skip
    launch = launch_on(
        ranks, kernels.combine, exchange.programs,
        {
            "y": given, "weights": factors,
            "experts": values_of(ranks, "Exchange", "experts", experts),
            "places": values_of(ranks, "Exchange", "places", places), "out": made,
        },
        {
            "arrived": exchange.arrived, "back": exchange.back, "pads": exchange.return_pads,
            "tokens": exchange.tokens, **exchange._sizes(),
        },
        exchange._constants(), given[0], {name: name for name in found}, aligned=exchange._aligned("y", "out"),
    )  # fmt: skip
    return Prepared(found, (launch,))


DISPATCH = PlannedFunction("Exchange.dispatch", _prepare_dispatch, results=2)
COMBINE = PlannedFunction("Exchange.combine", _prepare_combine, results=4)
