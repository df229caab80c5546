"""Attributes of `tt`: the cache policy (TritonAttrDefs.td), and its spelling before Triton 3.9."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, param_def
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from ..base import Keyword, parse_keyword_of, spells
from .enums import CacheModifier, EvictionPolicy

_PARAMETERS: dict[str, type[Keyword]] = {"cache_modifier": CacheModifier, "eviction_policy": EvictionPolicy}


@irdl_attr_definition
class CachePolicyAttr(ParametrizedAttribute):
    """Hints for the caches: `#tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>`.

    They never change what a program means.
    """

    name = "tt.cache_policy"

    cache_modifier_param: IntAttr = param_def()
    eviction_policy_param: IntAttr = param_def()

    @staticmethod
    def get(modifier: CacheModifier, policy: EvictionPolicy) -> CachePolicyAttr:
        """The policy of a cache modifier and an eviction policy."""
        return CachePolicyAttr(IntAttr(modifier.value), IntAttr(policy.value))

    @property
    def cache_modifier(self) -> CacheModifier:
        """The caches to go through."""
        return CacheModifier(self.cache_modifier_param.data)

    @property
    def eviction_policy(self) -> EvictionPolicy:
        """The priority of eviction."""
        return EvictionPolicy(self.eviction_policy_param.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<cache_modifier = ..., eviction_policy = ...>`, in any order."""
        found: dict[str, Attribute] = {}

        def parse_entry() -> None:
            position = parser.pos
            name = parser.parse_identifier(context_msg=" (cache_modifier or eviction_policy)")
            if name not in _PARAMETERS or name in found:
                parser.raise_error("expected cache_modifier and eviction_policy, once each", position)
            parser.parse_punctuation("=")
            found[name] = IntAttr(parse_keyword_of(parser, _PARAMETERS[name]).value)

        position = parser.pos
        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)
        if len(found) != len(_PARAMETERS):
            parser.raise_error("expected cache_modifier and eviction_policy", position)
        return [found[name] for name in _PARAMETERS]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        printer.print_string(
            f"<cache_modifier = {self.cache_modifier.keyword}, eviction_policy = {self.eviction_policy.keyword}>"
        )


@irdl_custom_directive
class CacheKeywords(CustomDirective):
    """Reads the cache hints as Triton 3.6 to 3.8 write them: `cacheModifier = cg evictionPolicy = evict_first`.

    They become the property `cachePolicy`. Writing them so is up to the printer of such a version.
    """

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse both keywords, in any order, where they are present."""
        modifier: CacheModifier | None = None
        policy: EvictionPolicy | None = None
        while True:
            if parser.parse_optional_keyword("cacheModifier") is not None:
                parser.parse_punctuation("=")
                modifier = parse_keyword_of(parser, CacheModifier)
            elif parser.parse_optional_keyword("evictionPolicy") is not None:
                parser.parse_punctuation("=")
                policy = parse_keyword_of(parser, EvictionPolicy)
            else:
                break
        if modifier is not None or policy is not None:
            state.properties["cachePolicy"] = CachePolicyAttr.get(
                modifier or CacheModifier.NONE, policy or EvictionPolicy.NORMAL
            )

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the keywords when the printer's Triton version wants them; else the attribute dictionary has them."""
        policy = op.properties.get("cachePolicy")
        if not isinstance(policy, CachePolicyAttr) or not spells(printer, "cache_policy_as_keywords"):
            return
        if policy.cache_modifier is not CacheModifier.NONE:
            printer.print_string(f" cacheModifier = {policy.cache_modifier.keyword}")
        if policy.eviction_policy is not EvictionPolicy.NORMAL:
            printer.print_string(f" evictionPolicy = {policy.eviction_policy.keyword}")
