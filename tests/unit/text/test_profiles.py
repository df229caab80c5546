"""Version profiles: what they claim about a Triton version is what the installed one says."""

import re
import warnings

import pytest

from tests.versions import INSTALLED
from tlx_xdsl.dialects.registry import our_dialects
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import FIRST_VERSION, LAST_VERSION, PROFILES, profile_for

pytestmark = pytest.mark.quick

STOCK_DIALECTS = ("tt", "ttg", "ttng")


def operations():
    return sorted(op.name for name in STOCK_DIALECTS for op in our_dialects()[name]().operations)


def test_the_tables_name_operations_that_exist_here():
    assert set(FIRST_VERSION) | set(LAST_VERSION) <= set(operations())


@pytest.mark.backend
def test_the_installed_version_has_the_operations_that_its_profile_says():
    pytest.importorskip("triton", reason="stock Triton is not installed")
    from tests.corpus.stock import reprint_in_subprocess

    profile = profile_for(INSTALLED)
    names = operations()
    texts = [f'module {{ tt.func @k() {{ "{name}"() : () -> () tt.return }} }}' for name in names]
    wrong = {}
    for name, answer in zip(names, reprint_in_subprocess(texts), strict=True):
        missing = re.search("unregistered|unknown op|not registered|does not allow unknown", answer.error) is not None
        if missing != (profile.why_missing(name) is not None):
            wrong[name] = answer.error.splitlines()[:1]
    assert not wrong


@pytest.mark.parametrize(
    ("version", "profile"),
    [("3.6", "3.6"), ("3.6.0", "3.6"), ("3.7.1", "3.7"), ("3.8.0+git1", "3.8"), ("3.9.0", "3.9")],
)
def test_a_known_version_has_its_profile(version, profile):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert profile_for(version).name == profile


def test_an_unknown_version_gets_the_nearest_lower_profile_and_a_warning():
    with pytest.warns(UserWarning, match=r"Triton 3\.11\.0 is not known, its text is written as for 3\.9"):
        assert profile_for("3.11.0") is PROFILES[-1]


@pytest.mark.parametrize("version", ["3.5.1", "2.0", "three", ""])
def test_what_is_no_supported_version_is_refused(version):
    with pytest.raises(ValueError, match=r"supported|expected a Triton version"):
        profile_for(version)


def test_operations_of_our_own_are_for_no_version():
    for profile in PROFILES:
        assert "which no pass has lowered" in profile.why_missing("tlx.fence")


@pytest.mark.parametrize(("version", "spelling"), [("3.6", "gpu.barrier"), ("3.7", "ttg.barrier local")])
def test_the_barrier_of_a_thread_block(version, spelling):
    module = parse_module('module { tt.func @k() { ttg.barrier local loc("k.py":3:5) tt.return } }')
    text = print_module(module, profile=profile_for(version))
    assert re.search(rf"    {re.escape(spelling)} loc\((#loc\d*)\)", text), text
    assert '"k.py":3:5' in text


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_no_version_gets_attributes_of_ours(profile):
    module = parse_module("""
        module attributes {"ttg.num-warps" = 4 : i32, tlx.has_tlx_ops} {
          tt.func @k() {
            ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24>, tlx.no_ending_cluster_sync}
            default { ttg.warp_yield }
            partition0() num_warps(4) { ttg.warp_return } : () -> ()
            "tt.return"() {tlx.mine = "yes"} : () -> ()
          }
        }""")
    text = print_module(module, profile=profile)
    assert "tlx." not in text
    assert '"ttg.num-warps" = 4' in text
    assert "requestedRegisters = array<i32: 24>" in text
    assert print_module(module).count("tlx.") == 3


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_pointer_that_is_only_read_is_a_pointer_to_global_memory(profile):
    text = print_module(parse_module('tt.func @k(%p: !tt.ptr<f32, "constant">) { tt.return }'), profile=profile)
    assert ('%p: !tt.ptr<f32, "constant">' if profile.version >= (3, 9) else "%p: !tt.ptr<f32>") in text
