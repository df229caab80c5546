"""Our dialects have what Triton's TableGen files define: operations, operands, results, attributes, enumerations.

What AMD hardware alone has is left out by rule: names that start with AMD.
"""

import re
from dataclasses import fields
from importlib import util
from pathlib import Path

import pytest
from xdsl.irdl import OptionalDef, VariadicDef

from tests.unit.dialects import td
from tests.versions import NEWEST, is_installed
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.tt import enums as tt_enums
from tlx_xdsl.dialects.ttg import attrs as ttg_attrs
from tlx_xdsl.dialects.ttng import attrs as ttng_attrs
from tlx_xdsl.layouts import encodings

DIALECTS = {"tt": tt.TT, "ttg": ttg.TTG, "ttng": ttng.TTNG}
OPERATIONS = {op.name: op for dialect in DIALECTS.values() for op in dialect.operations}
ATTRIBUTES = {attr.name: attr for dialect in DIALECTS.values() for attr in dialect.attributes}
ENUMS = {
    name: enum
    for module in (tt_enums, ttg_attrs, ttng_attrs)
    for name, enum in vars(module).items()
    if isinstance(enum, type) and issubclass(enum, tt_enums.Keyword)
}
LAYOUTS = {
    layout.mnemonic: layout
    for layout in vars(encodings).values()
    if isinstance(layout, type) and hasattr(layout, "mnemonic")
}

RENAMED = {
    ("tt.call", "operands"): ("arguments", "every xDSL operation has `operands`"),
    ("ttng.packed_arith", "operands"): ("inputs", "every xDSL operation has `operands`"),
}
"""Operands that have another name here, and why."""

OLDER = {"tt.make_tensor_ptr", "tt.advance", "ttg.local_barrier", "ttng.cluster_arrive", "ttng.cluster_wait"}
"""Operations that only versions before Triton 3.9 have."""

OF_FORKS = {"tt.reduce": {"reduction_ordering"}}
"""Properties of Meta's Triton, which upstream's generic form reads, too, and skips."""

ENUM_CASES_RENAMED = {("AddrSpace", "None"): "Null"}
"""`None` is a keyword of Python."""

LAYOUT_PARAMETERS = {
    "linear": "a linear layout is spelled out as its bases",
    "generic_linear": "a linear layout is spelled out as its bases",
    "shared_linear": "a linear layout is spelled out as its bases",
    "padded_shared": "a linear layout is spelled out as its bases",
    "nvmma_shared": "`rank` stands in the text alone",
}
"""Layouts whose fields are those of the text, not of the TableGen file, and why."""


def triton_include() -> Path | None:
    spec = util.find_spec("triton")
    if spec is None or spec.origin is None or not is_installed(NEWEST):
        return None
    return Path(spec.origin).parent / "include" / "triton" / "Dialect"


INCLUDE = triton_include()
if INCLUDE is None or not INCLUDE.is_dir():
    pytest.skip(f"Triton {NEWEST} with its TableGen files is not installed", allow_module_level=True)

TABLE = td.TableGen(
    [d for name in ("Triton", "TritonGPU", "TritonNvidiaGPU") for d in td.read(INCLUDE / name / "IR").definitions]
)
STOCK = {
    name: definition for name, definition in TABLE.operations.items() if not re.search("amd", definition.name, re.I)
}


def snake_case(name: str) -> str:
    """`multicastCTA` -> `multicast_cta`, `outLHS` -> `out_lhs`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def our_name(op: str, name: str) -> str:
    renamed = RENAMED.get((op, name))
    return snake_case(name) if renamed is None else renamed[0]


def arity(definition) -> str:
    if isinstance(definition, OptionalDef):
        return "optional"
    return "variadic" if isinstance(definition, VariadicDef) else "single"


def stock_arity(argument: td.Argument) -> str:
    for wrapper, name in (("Optional", "optional"), ("Variadic", "variadic"), ("VariadicRegion", "variadic")):
        if argument.is_a(wrapper):
            return name
    return "single"


def test_counts():
    counts = {dialect: sum(name.startswith(f"{dialect}.") for name in STOCK) for dialect in DIALECTS}
    assert counts == {"tt": 54, "ttg": 28, "ttng": 36}


def test_no_operation_is_invented():
    assert set(OPERATIONS) - set(STOCK) == OLDER


@pytest.mark.parametrize("name", sorted(STOCK))
def test_operation(name):
    assert name in OPERATIONS, f"{name} is missing"
    ours, stock = OPERATIONS[name].get_irdl_definition(), STOCK[name]

    arguments = stock.argument_list("arguments")
    operands = [a for a in arguments if not TABLE.is_attribute(a)]
    assert [(n, arity(d)) for n, d in ours.operands] == [(our_name(name, a.name), stock_arity(a)) for a in operands]

    results = stock.argument_list("results")
    assert [arity(d) for _, d in ours.results] == [stock_arity(a) for a in results]
    for (ours_name, _), result in zip(ours.results, results, strict=True):
        assert not result.name or ours_name == our_name(name, result.name)

    regions = stock.argument_list("regions")
    assert [(n, arity(d)) for n, d in ours.regions] == [(our_name(name, a.name), stock_arity(a)) for a in regions]

    attributes = {a.name: a for a in arguments if TABLE.is_attribute(a)}
    of_forks = OF_FORKS.get(name, ())
    properties = {n: d for n, d in ours.properties.items() if not n.endswith("SegmentSizes") and n not in of_forks}
    assert set(properties) == set(attributes)
    for attribute, definition in properties.items():
        stock_attribute = attributes[attribute]
        may_lack = stock_attribute.is_a("OptionalAttr") or stock_attribute.type == "UnitAttr"
        has_default = stock_attribute.is_a("DefaultValuedAttr") or stock_attribute.is_a("DefaultValuedOptionalAttr")
        assert isinstance(definition, OptionalDef) == may_lack, f"whether '{attribute}' is optional"
        assert (definition.default_value is not None) == has_default, f"whether '{attribute}' has a default"


@pytest.mark.parametrize("name", sorted(name for name in TABLE.enums if not name.startswith("AMD")))
def test_enum(name):
    cpp_name, cases = TABLE.enums[name]
    assert cpp_name in ENUMS, f"{cpp_name} is missing"
    ours = {case.name: (case.value, case.keyword) for case in ENUMS[cpp_name]}
    assert ours == {ENUM_CASES_RENAMED.get((cpp_name, symbol), symbol): case for symbol, case in cases.items()}


def mnemonics() -> dict[str, td.Definition]:
    """Attributes and types by their full names."""
    found = {}
    dialects = {"Triton_Dialect": "tt", "TritonGPU_Dialect": "ttg", "TritonNvidiaGPU_Dialect": "ttng"}
    for definition in TABLE.definitions:
        if re.search("amd", definition.name, re.I):
            continue
        dialect = next((short for long, short in dialects.items() if long in definition.head), None)
        if definition.kind in ("AttrDef", "TypeDef"):
            explicit = re.search(r'let\s+mnemonic\s*=\s*"([\w.]+)"', definition.body)
            assert explicit is not None, definition.name
            found[f"{dialect}.{explicit[1]}"] = definition
        elif definition.kind == "EnumAttr":
            found[f"{dialect}.{definition.mnemonic}"] = definition
        elif definition.kind in ("TritonTypeDef", "TTG_TypeDef", "TTNG_TypeDef"):
            dialect = {"TritonTypeDef": "tt", "TTG_TypeDef": "ttg", "TTNG_TypeDef": "ttng"}[definition.kind]
            found[f"{dialect}.{td.split(definition.head)[1].strip().strip(chr(34))}"] = definition
        elif definition.kind in ("TritonGPU_Attr", "DistributedEncoding", "LinearDistributedEncoding"):
            explicit = re.search(r'let\s+mnemonic\s*=\s*"([\w.]+)"', definition.body)
            if explicit is not None:
                found[f"ttg.{explicit[1]}"] = definition
    return found


@pytest.mark.parametrize("name", sorted(mnemonics()))
def test_attribute_or_type(name):
    assert name in ATTRIBUTES, f"{name} is missing"
    mnemonic = name.split(".")[1]
    if mnemonic in LAYOUTS and mnemonic not in LAYOUT_PARAMETERS:
        definition = mnemonics()[name]
        keys = [a.name for a in definition.argument_list("parameters")]
        ours = [encodings.key_of(field.name) for field in fields(LAYOUTS[mnemonic])]
        assert sorted(ours) == sorted(keys)
