"""The names, parameters and defaults of tlx are those of Meta's TLX for NVIDIA GPUs."""

import inspect

import pytest

import tlx_xdsl.language as tl
from tlx_xdsl.language import float32, tlx
from tlx_xdsl.language.tlx import storage_kind

pytestmark = pytest.mark.quick

REQUIRED = inspect.Parameter.empty

FUNCTIONS = {
    # tasks and synchronisation
    "async_tasks": {
        "exclusive": False,
        "no_ending_cluster_sync": False,
        "mbarrier_try_wait_suspend_ns": None,
        "warp_specialize": True,
    },
    "async_task_replica_id": {},
    "alloc_barriers": {"num_barriers": REQUIRED, "arrive_count": 1},
    "alloc_warp_barrier": {"num_barriers": REQUIRED, "num_warps": 1, "num_arrivals": 1},
    "barrier_expect_bytes": {"bar": REQUIRED, "size": REQUIRED, "pred": None},
    "barrier_wait": {"bar": REQUIRED, "phase": REQUIRED, "pred": None},
    "barrier_arrive": {"bar": REQUIRED, "arrive_count": 1, "remote_cta_rank": None, "pred": None},
    "named_barrier_wait": {"bar": REQUIRED, ...: REQUIRED},
    "named_barrier_arrive": {"bar": REQUIRED, ...: REQUIRED},
    "cluster_barrier": {},
    "fence_mbarrier_init_cluster": {},
    "fence": {...: REQUIRED},
    "fence_async_shared": {},
    # local and tensor memory
    "local_alloc": {
        "shape": REQUIRED,
        "dtype": REQUIRED,
        "num": REQUIRED,
        "storage": storage_kind.smem,
        "reuse": None,
        "layout": None,
    },
    "storage_alias_spec": {"storage": storage_kind.smem, "buffer_size_bytes": None},
    "reuse_group": {"args": REQUIRED, "group_type": tlx.reuse_group_type.shared, "group_size": 1},
    "local_view": {...: REQUIRED, "buffer_idx": REQUIRED},
    "subslice": {...: REQUIRED, "offset": REQUIRED, "size": REQUIRED},
    "local_slice": {...: REQUIRED, "offset": REQUIRED, "shape": REQUIRED},
    "local_trans": {...: REQUIRED, "dims": (1, 0)},
    "local_reshape": {"src": REQUIRED, "shape": REQUIRED},
    "local_reinterpret": {"src": REQUIRED, "dtype": REQUIRED, "shape": None, "layout": None},
    "local_load": {
        "src": REQUIRED,
        "token": None,
        "layout": None,
        "relaxed": False,
        "rematerialize_coordinates": False,
        "rematerialize_coordinates_group": None,
    },
    "local_store": {"dst": REQUIRED, "src": REQUIRED},
    "local_gather": {"src": REQUIRED, "indices": REQUIRED, "axis": REQUIRED, "token": None},
    "local_scatter": {"dst": REQUIRED, "src": REQUIRED, "indices": REQUIRED, "axis": REQUIRED, "token": None},
    "tmem_copy": {"src": REQUIRED, "dst": REQUIRED},
    "tmem_shift": {...: REQUIRED},
    "remote_view": {...: REQUIRED, "remote_cta_rank": REQUIRED},
    "remote_shmem_store": {"dst": REQUIRED, "src": REQUIRED, "remote_cta_rank": REQUIRED},
    "async_remote_shmem_store": {
        "dst": REQUIRED,
        "src": REQUIRED,
        "remote_cta_rank": REQUIRED,
        "barrier": REQUIRED,
    },
    "async_remote_shmem_copy": {
        "dst": REQUIRED,
        "src": REQUIRED,
        "remote_cta_rank": REQUIRED,
        "barrier": REQUIRED,
    },
    # global memory and TMA
    "async_load": {
        "src": REQUIRED,
        "result": REQUIRED,
        "mask": None,
        "other": None,
        "cache_modifier": "",
        "eviction_policy": "",
        "is_volatile": False,
        "bulk": False,
        "bulk_size": None,
        "barrier": None,
    },
    "async_load_commit_group": {"tokens": ()},
    "async_load_wait_group": {"pendings": REQUIRED, "tokens": ()},
    "async_descriptor_load": {
        "desc": REQUIRED,
        "result": REQUIRED,
        "offsets": REQUIRED,
        "barrier": REQUIRED,
        "pred": None,
        "cache_modifier": "",
        "eviction_policy": "",
        "multicast_targets": (),
        "two_ctas": False,
    },
    "async_descriptor_store": {
        "desc": REQUIRED,
        "source": REQUIRED,
        "offsets": REQUIRED,
        "eviction_policy": "",
        "store_reduce": "",
    },
    "async_descriptor_store_wait": {"pendings": REQUIRED},
    "async_descriptor_gather": {
        "desc": REQUIRED,
        "result": REQUIRED,
        "x_offsets": REQUIRED,
        "y_offset": REQUIRED,
        "barrier": REQUIRED,
        "pred": None,
        "multicast": False,
    },
    "async_descriptor_scatter": {"desc": REQUIRED, "source": REQUIRED, "x_offsets": REQUIRED, "y_offset": REQUIRED},
    "async_descriptor_prefetch_tensor": {"desc": REQUIRED, "offsets": REQUIRED, "pred": None, "eviction_policy": ""},
    "prefetch": {"pointer": REQUIRED, "level": "L2", "mask": None, "tensormap": False},
    "async_store": {"dst_global_ptr": REQUIRED, "src_smem": REQUIRED, "size": REQUIRED},
    "allocate_tensor_descriptor": {"num": REQUIRED},
    "make_tensor_descriptor": {
        "desc_ptr": REQUIRED,
        "base": REQUIRED,
        "shape": REQUIRED,
        "strides": REQUIRED,
        "block_shape": REQUIRED,
        "padding_option": "zero",
    },
    "reinterpret_tensor_descriptor": {"desc_ptr": REQUIRED, "block_shape": REQUIRED, "dtype": REQUIRED},
    # tensor cores
    "async_dot": {
        "A": REQUIRED,
        "B": REQUIRED,
        "acc": None,
        "use_acc": None,
        "pred": None,
        "mBarriers": (),
        "two_ctas": False,
        "force_async": False,
        "input_precision": None,
        "out_dtype": float32,
    },
    "async_dot_scaled": {
        "A": REQUIRED,
        "B": REQUIRED,
        "acc": REQUIRED,
        "A_scale": REQUIRED,
        "A_format": REQUIRED,
        "B_scale": REQUIRED,
        "B_format": REQUIRED,
        "use_acc": None,
        "pred": None,
        "mBarriers": (),
        "two_ctas": False,
        "force_async": False,
        "out_dtype": float32,
    },
    "async_dot_wait": {"pendings": REQUIRED, "inp": REQUIRED},
    "dot_scaled": {name: parameter.default for name, parameter in inspect.signature(tl.dot_scaled).parameters.items()}
    | {"tiles_per_warp": None},
    "dot": {
        **dict.fromkeys(("input", "other"), REQUIRED),
        **dict.fromkeys(("acc", "input_precision", "allow_tf32", "max_num_imprecise_acc", "out_dtype")),
        "tiles_per_warp": None,
    },
    "tcgen05_commit": {"mBarrier": REQUIRED, "two_ctas": False},
    # 8-bit floats
    **{
        name: dict.fromkeys(("lhs", "rhs"), REQUIRED) | {"dtype": None}
        for name in ("packed_add4", "packed_sub4", "packed_mul4", "add4", "sub4", "mul4")
    },
    **{name: dict.fromkeys(("lhs", "rhs", "acc"), REQUIRED) | {"dtype": None} for name in ("packed_fma4", "fma4")},
    # layouts
    "require_layout": {"x": REQUIRED, "layout": REQUIRED, "pin": True, "late_address_compute": False},
    "release_layout": {"x": REQUIRED, "relaxed": False},
    "slice_layout": {"parent": REQUIRED, "dim": REQUIRED},
    "dot_operand_layout": {"operand_index": REQUIRED, "parent": REQUIRED, "k_width": None},
    "cast_preserve_layout": {"src": REQUIRED, "dtype": REQUIRED, "fp_downcast_rounding": None, "bitcast": False},
    "zeros": {"shape": REQUIRED, "dtype": REQUIRED, "layout": None},
    "dump_layout": {"x": REQUIRED},
    "assert_same_layout": {"lhs": REQUIRED, "rhs": REQUIRED},
    # cluster launch control
    "clc_create_context": {"num_consumers": REQUIRED, "num_stages": 1},
    "clc_producer": {"context": REQUIRED, "p_producer": REQUIRED, "multi_ctas": True, "k": 0},
    "clc_consumer": {"context": REQUIRED, "p_consumer": REQUIRED, "multi_ctas": True, "k": 0, "return_3d": False},
    "_alloc_clc_responses": {...: REQUIRED},
    "_clc_issue": {"response": REQUIRED, "barrier": REQUIRED},
    # utility
    "cluster_cta_rank": {},
    "cluster_size_1d": {},
    "thread_id": {"axis": REQUIRED},
    "clock64": {},
    "stoch_round": {"src": REQUIRED, "dst_ty": REQUIRED, "rand_bits": REQUIRED},
    "vote_ballot_sync": {"mask": REQUIRED, "pred": REQUIRED},
    "warp_all": {"pred": REQUIRED},
    "warp_any": {"pred": REQUIRED},
    "warp_ballot": {"pred": REQUIRED},
    "warp_predicate": {
        "predicate": REQUIRED,
        "inits": REQUIRED,
        "body": REQUIRED,
        "args": (),
        "wave_uniform": False,
    },
    "warp_id": {},
    "num_warps": {},
    "dtype_of": {"v": REQUIRED},
    "size_of": {"dtype": REQUIRED},
    "get_fp8_format_name": {"dtype": REQUIRED},
    "get_bufidx_phase": {"accum_cnt": REQUIRED, "NUM_BUFFERS": REQUIRED},
    "assume_uniform": {"value": REQUIRED},
}
"""Parameters in order with their defaults; `...` stands for a name that TLX's table does not state."""

CLASSES = {
    "buffered_tensor_type": ["element_ty", "shape", "num", "storage", "layout"],
    "mbarrier": ["handle", "num", "layout", "storage", "is_warp_barrier"],
    "layout": ["spec", "shape", "stride"],
    "swizzled_layout": ["bits", "base", "shift", "order"],
    "shared_linear_layout_encoding": ["offset_bases", "block_bases", "alignment"],
    "nv_mma_shared_layout_encoding": [
        "shape", "order", "elemType", "numCTAsPerCGA", "numCTASplit", "numCTAOrder", "fp4Padded", "swizzled",
    ],
    "tensor_memory_layout_encoding": ["blockM", "blockN", "colStride", "ctaMode", "CTASplitM", "CTASplitN"],
    "make_tensor_memory_layout": ["blockM", "blockN", "colStride", "ctaMode", "CTASplitM", "CTASplitN"],
    "tensor_memory_scales_layout_encoding": ["CTASplitM", "CTASplitN"],
    "make_tensor_memory_scales_layout": ["CTASplitM", "CTASplitN"],
    "nv_mma_layout": ["warps_per_cta", "instr_shape"],
    "blocked_layout_encoding": ["size_per_thread", "threads_per_warp", "warps_per_cta", "order", "cga_bases"],
    "slice_layout_encoding": ["dim", "parent"],
    "dot_operand_layout_encoding": ["operand_index", "parent", "k_width"],
    "distributed_linear_layout_encoding": ["reg_bases", "lane_bases", "warp_bases", "block_bases", "shape"],
}  # fmt: skip

OTHER_NAMES = [
    "CLCPipelineContext", "DummyRegisterLayoutEncoding", "DummyTMEMLayoutEncoding", "TMemCTAMode", "_clc_query",
    "async_task", "async_token", "buffered_tensor", "clc_response", "padded_shared_layout_encoding",
    "reuse_group_ir_type", "reuse_group_type", "storage_alias_spec_type", "storage_alias_spec_type_class",
    "storage_kind", "swizzled_shared_layout_encoding", "tensor_descriptor_ptr",
]  # fmt: skip

AMD_ONLY = [
    "amd_mfma_layout", "async_amd_descriptor_load", "buffer_load_to_local", "cond_barrier", "extract_slice",
    "rematerialized_range", "require_amd_wmma_layout", "sched_barrier", "set_priority", "update_tensor_descriptor",
    "warp_pipeline_stage", "workgroup_barrier",
]  # fmt: skip


OURS = {"async_descriptor_store_wait": {"read": True}, "local_reinterpret": {"num": 0, "pin": True}}
"""Parameters that Meta's TLX does not have, or by another name or at another place; left out, a call means the same."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_and_defaults(name):
    wanted = FUNCTIONS[name] | OURS.get(name, {})
    found = inspect.signature(getattr(tlx, name)).parameters
    assert len(found) == len(wanted)
    for parameter, (known, default) in zip(found.values(), wanted.items(), strict=True):
        assert known in (parameter.name, ...)
        assert parameter.default is default or parameter.default == default


@pytest.mark.parametrize("name", CLASSES)
def test_constructors(name):
    assert list(inspect.signature(getattr(tlx, name)).parameters) == CLASSES[name]


def test_a_task_says_how_it_runs():
    parameters = list(inspect.signature(tlx.async_task).parameters)[1:]
    assert parameters == ["num_warps", "num_regs", "registers", "replicate", "warp_group_start_id"]


@pytest.mark.parametrize("name", AMD_ONLY)
def test_names_of_amd_say_so(name):
    with pytest.raises(RuntimeError, match=f"tlx.{name} exists for AMD GPUs only"):
        getattr(tlx, name)()


def test_everything_is_exported():
    assert {*FUNCTIONS, *CLASSES, *OTHER_NAMES} <= set(tlx.__all__)
    for name in tlx.__all__:
        assert getattr(tlx, name).__doc__
    # A star import takes all of them.
    exec("from tlx_xdsl.language.tlx import *", {})


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'local_aloc'"):
        _ = tlx.local_aloc
