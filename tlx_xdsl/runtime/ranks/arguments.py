"""The arguments of a launch on several ranks: what the kernel of each one gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, cast

from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.interpreter.arguments import bound_at
from tlx_xdsl.interpreter.code import Function
from tlx_xdsl.numerics.host_arrays import Addressed, addresses_of

from ..driver.host_values import Typed, is_constant, is_descriptor, type_of, typed
from .simulated import PerLaunch, SymmetricArray


def ranks_of(arguments: Mapping[str, Any], asked: int) -> int:
    """Return on how many ranks a launch is: as many as its symmetric tensors have, or as are asked for; 0 for one GPU.

    Where a value differs between launches it is 1 at least. Raises InputError where these differ.
    """
    for name, value in arguments.items():
        if isinstance(value, SymmetricArray):
            if asked not in (0, len(value)):
                raise InputError(f"'{name}' is symmetric over {len(value)} ranks, and ranks={asked}")
            asked = len(value)
    return max(asked, 1) if any(isinstance(value, PerLaunch) for value in arguments.values()) else asked


def launches_of(arguments: Mapping[str, Any]) -> int:
    """Return for how many launches arguments have a value for each; 0 where none has.

    Raises InputTypeError where these differ.
    """
    counts = {name: len(value.values) for name, value in arguments.items() if isinstance(value, PerLaunch)}
    if len(set(counts.values())) > 1:
        found = " and ".join(f"{count} for '{name}'" for name, count in counts.items())
        raise InputTypeError(f"there must be as many values for launches everywhere, found {found}")
    return next(iter(counts.values()), 0)


def parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values of an argument on all ranks and in all launches, with names that say the rank."""
    if isinstance(value, PerLaunch):
        for number, each in enumerate(value.values):
            yield from parts_of(f"{name} of launch {number}", each)
    elif isinstance(value, list | SymmetricArray):
        yield from ((f"{name} of rank {rank}", each) for rank, each in enumerate(of_each_rank(value)))
    else:
        yield name, value


def of_each_rank(value: Any) -> list[Any]:
    """The value of an argument on each rank; one value alone where it is the same for all."""
    if isinstance(value, SymmetricArray):
        return [*value.arrays]
    return cast(list[Any], value) if isinstance(value, list) else [value]


def of_ranks(arguments: Mapping[str, Any], ranks: int, launches: int) -> list[dict[str, Any]]:
    """The arguments of each launch of each rank, those of the first launch first.

    Of a list that is the item with the rank's number, of a symmetric tensor its table, else the value.
    Raises TypeError for an array that several ranks would share, and for a list of another length.
    """
    return [
        {
            name: _of_rank(name, _of_launch(name, value, number, launches), rank, ranks)
            for name, value in arguments.items()
        }
        for number in range(launches)
        for rank in range(ranks)
    ]


def _of_launch(name: str, value: Any, number: int, launches: int) -> Any:
    if not isinstance(value, PerLaunch):
        return value
    if len(value.values) != launches:
        raise InputTypeError(f"'{name}' must have a value for each of {launches} launches, found {len(value.values)}")
    return value.values[number]


def _of_rank(name: str, value: Any, rank: int, ranks: int) -> Any:
    if isinstance(value, SymmetricArray):
        return value.peers(rank)
    if isinstance(value, list):
        items = cast(list[Any], value)
        if len(items) != ranks:
            raise InputTypeError(f"'{name}' must have a value for each of {ranks} ranks, found {len(items)}")
        return items[rank]
    if _has_no_memory(value) or ranks == 1:
        return value
    raise InputTypeError(
        f"'{name}' is one {type(value).__name__}, and no two of {ranks} ranks share memory: give a list with one for "
        "each rank, or tlx_xdsl.symmetric([...]), which the others reach"
    )


def _has_no_memory(value: Any) -> bool:
    """Return whether a value is a number, a constant such as a configuration, or a tuple of these."""
    if isinstance(value, tuple):
        return all(map(_has_no_memory, cast(tuple[Any, ...], value)))
    is_configuration = is_dataclass(value) and not is_descriptor(value)
    return is_constant(value) or is_configuration or isinstance(value, bool | int | float | str)


def typed_ranks(
    source: KernelSource, arguments: Sequence[Mapping[str, Any]], types: Mapping[str, Signature] | None
) -> list[Typed]:
    """The types of the arguments of each launch, which are those of one kernel for all.

    What a launch promises of a value, such as its alignment, holds for all of them or is left out.
    Raises TypeError for what is a part of the kernel, and differs.
    """
    found = [typed(source, each, types) for each in arguments]
    loose = dict(types or {})
    for parameter in source.parameters:
        name = parameter.name
        signatures = [each.signature.get(name) for each in found]
        if any(each != signatures[0] for each in signatures):
            loose[name] = type_of(parameter, arguments[0][name])
            continue
        constants = [each.constexprs.get(name) for each in found]
        if any(repr(each) != repr(constants[0]) for each in constants):
            raise InputTypeError(f"'{name}' is a part of the kernel, and differs between launches")
    return found if loose == (types or {}) else [typed(source, each, loose) for each in arguments]


def bind_ranks(
    function: Function,
    values: Sequence[Sequence[Any]],
    names: Sequence[str],
    symmetric: Mapping[str, SymmetricArray],
    memory: Addressed,
    ranks: int,
) -> list[list[list[Any]]]:
    """The values of the arguments of `function` on each rank in each launch; `values` are in the order of `of_ranks`.

    Arrays and symmetric tensors get addresses in `memory`. Raises as `interpreter.arguments.bind` does.
    """
    count = len(names)
    own = [
        (f"{name} of rank {at % ranks}", value)
        for at, each in enumerate(values)
        for name, value in zip(names, each, strict=True)
    ]
    shared = [(f"{name} of rank {rank}", each[rank]) for name, each in symmetric.items() for rank in range(ranks)]
    found = addresses_of([value for _, value in (*own, *shared)], [name for name, _ in (*own, *shared)], memory)
    for at, each in enumerate(symmetric.values()):
        each.connect([address or 0 for address in found[len(own) + at * ranks :][:ranks]])
    made = [bound_at(function, each, names, found[at * count :][:count]) for at, each in enumerate(values)]
    return [made[rank::ranks] for rank in range(ranks)]
