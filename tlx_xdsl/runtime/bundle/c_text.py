"""The texts that the C launcher is made of. `$name` is the bundle's name; the other places are filled by c_launcher.

Arguments have names in C that collide with nothing.
"""

import re
from collections.abc import Collection, Sequence
from string import Template

HEADER = Template("""\
/*
$about
 *
 * Link with libcuda (-lcuda). Each function returns CUDA_SUCCESS or an error, of which ${name}_message() says in words
 * where it arose (in this thread). Loading and unloading are for one thread at a time; any number may launch meanwhile
 * in contexts that stay loaded.
 *
 * Arguments of the launch:
$arguments
 *
 * Pointers are addresses in GPU memory. A tensor descriptor (tensordesc<...>) is the address of a tensor with its
 * shape and strides in elements, outermost dimension first; outside of the tensor it reads zeros.
 */
#ifndef $guard
#define $guard

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernel into the CUDA context that is current, whose GPU must be one that the kernel is for. */
CUresult ${name}_load(void);

/* Enqueues the kernel, which must be loaded in the context that is current. The grid counts $unit. */
CUresult ${name}_launch(
    $parameters);

/* Takes the kernel out of the context that is current: when no launch of it runs, and before the context ends. */
CUresult ${name}_unload(void);

/* What went wrong in this thread's last call that failed. */
const char *${name}_message(void);

#ifdef __cplusplus
}
#endif

#endif
""")

SOURCE = Template("""\
/* Launches the kernel of ${name}.h; written by tlx_xdsl. */
#include "${name}.h"

#include <string.h>

#if defined(__cplusplus)
#define TLX_THREAD_LOCAL thread_local
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TLX_THREAD_LOCAL _Thread_local
#elif defined(__GNUC__)
#define TLX_THREAD_LOCAL __thread
#else
#define TLX_THREAD_LOCAL
#endif

#define TLX_MAX_CONTEXTS 64

/* The kernel's binary code, an ELF file; the union is for its alignment. */
static const union {
    unsigned char bytes[$size];
    uint64_t word;
} binary = {{
$binary
}};

/* The contexts that the kernel is loaded in. A slot is free where the function is null. */
static struct {
    CUcontext context;
    CUmodule module;
    CUfunction function;
} loaded[TLX_MAX_CONTEXTS];

static TLX_THREAD_LOCAL const char *message = "no call has failed";

static CUresult fail(CUresult status, const char *text)
{
    message = text;
    return status;
}

const char *${name}_message(void)
{
    return message;
}

$find
$encode$load
$launch""")

FIND = """\
/* The slot of the context that is current, or -1. */
static int find_loaded(CUcontext *context)
{
    int slot;
    *context = NULL;
    if (cuCtxGetCurrent(context) != CUDA_SUCCESS || *context == NULL)
        return -1;
    for (slot = 0; slot < TLX_MAX_CONTEXTS; ++slot)
        if (loaded[slot].function != NULL && loaded[slot].context == *context)
            return slot;
    return -1;
}
"""

ENCODE = Template("""\
/* Writes a tensor map. Shape and strides are in elements, outermost first; box is innermost first, as the driver has
 * it. `packing` is the number of elements in one of the tensor's own. */
static CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, unsigned int element_bytes, cuuint32_t rank,
                             void *address, const int32_t *shape, const int64_t *strides, const cuuint32_t *box,
                             CUtensorMapSwizzle swizzle, unsigned int packing)
{
    static const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    cuuint64_t dims[5] = {0, 0, 0, 0, 0};
    cuuint64_t pitches[5] = {0, 0, 0, 0, 0}; /* bytes, of all dimensions but the innermost */
    cuuint64_t last_element;
    cuuint32_t dim;
    int version = 0;
    CUresult status;
    for (dim = 0; dim < rank; ++dim) {
        if (shape[rank - 1 - dim] < 1)
            return CUDA_ERROR_INVALID_VALUE;
        dims[dim] = (cuuint64_t)shape[rank - 1 - dim];
        if (dim > 0)
            pitches[dim - 1] = (cuuint64_t)strides[rank - 1 - dim] * element_bytes;
    }
    dims[0] *= packing;
    status = cuTensorMapEncodeTiled(map, type, rank, address, dims, pitches, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                    swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS)
        return status;
    /* Drivers before CUDA 13.2 mark tensors below 128 KiB as large ones, which Blackwell takes at its word. */
    last_element = (dims[0] - 1) * element_bytes;
    for (dim = 1; dim < rank; ++dim)
        last_element += (dims[dim] - 1) * pitches[dim - 1];
    if (last_element + 1 < 128 * 1024) {
        status = cuDriverGetVersion(&version);
        if (status == CUDA_SUCCESS && version <= 13010)
            map->opaque[1] &= ~((cuuint64_t)1 << 21);
    }
    return status;
}

""")

ENCODE_ARGUMENT = Template("""\
    {
        static const cuuint32_t ${name}_box[$rank] = {$box};
        status = encode_tiled(&maps[$index], CU_TENSOR_MAP_DATA_TYPE_$type, $element_bytes, $rank, $name, ${name}_shape,
                              ${name}_strides, ${name}_box, CU_TENSOR_MAP_SWIZZLE_$swizzle, $packing);
        if (status != CUDA_SUCCESS)
            return fail(status, "'$name': cuTensorMapEncodeTiled refused the tensor");
    }
""")

LOAD = Template("""\
CUresult ${name}_load(void)
{
    CUcontext context;
    CUdevice device;
    CUmodule module;
    CUfunction function;
    CUresult status;
    int slot, major = 0, minor = 0;
    if (find_loaded(&context) >= 0)
        return CUDA_SUCCESS;
    status = cuCtxGetDevice(&device);
    if (status != CUDA_SUCCESS)
        return fail(status, "cuCtxGetDevice failed: is a CUDA context current in this thread?");
    status = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (status == CUDA_SUCCESS)
        status = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (status != CUDA_SUCCESS)
        return fail(status, "cuDeviceGetAttribute failed");
    if (!($fits))
        return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, "the kernel was compiled for $target, which this GPU does not run");
    for (slot = 0; slot < TLX_MAX_CONTEXTS && loaded[slot].function != NULL;)
        ++slot;
    if (slot == TLX_MAX_CONTEXTS)
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "the kernel is loaded in too many contexts");
    status = cuModuleLoadData(&module, binary.bytes);
    if (status != CUDA_SUCCESS)
        return fail(status, "cuModuleLoadData failed");
    status = cuModuleGetFunction(&function, module, "$entry");
    if (status != CUDA_SUCCESS) {
        cuModuleUnload(module);
        return fail(status, "cuModuleGetFunction failed: $entry");
    }
$setup    loaded[slot].context = context;
    loaded[slot].module = module;
    loaded[slot].function = function;
    return CUDA_SUCCESS;
}

CUresult ${name}_unload(void)
{
    CUcontext context;
    CUresult status;
    int slot = find_loaded(&context);
    if (slot < 0)
        return CUDA_SUCCESS;
    loaded[slot].function = NULL;
    status = cuModuleUnload(loaded[slot].module);
    return status == CUDA_SUCCESS ? status : fail(status, "cuModuleUnload failed");
}
""")

SHARED_MEMORY = Template("""\
    status = cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED);
    if (status == CUDA_SUCCESS)
        status = cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, $shared);
    if (status != CUDA_SUCCESS) {
        cuModuleUnload(module);
        return fail(status, "the GPU refused $shared bytes of shared memory for a CTA");
    }
""")

WIDE_CLUSTER = """\
    status = cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (status != CUDA_SUCCESS) {
        cuModuleUnload(module);
        return fail(status, "the GPU refused clusters of more than 8 CTAs");
    }
"""

LAUNCH = Template("""\
CUresult ${name}_launch(
    $declared)
{
    CUcontext context;
    CUlaunchConfig config;
    CUresult status;
    CUdeviceptr global_scratch = 0, profile_scratch = 0;
    int slot;
$maps$attribute_memory    void *parameters[] = {
        $addresses,
    };
    if (gridX == 0 || gridY == 0 || gridZ == 0)
        return CUDA_SUCCESS;
$checks    slot = find_loaded(&context);
    if (slot < 0)
        return fail(CUDA_ERROR_NOT_INITIALIZED, "${name}_load was not called in the current CUDA context");
$encode    memset(&config, 0, sizeof config);
    config.gridDimX = $grid_x;
    config.gridDimY = gridY;
    config.gridDimZ = gridZ;
    config.blockDimX = $threads;
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.sharedMemBytes = $shared;
    config.hStream = stream;
$attributes$scratch_begin    status = cuLaunchKernelEx(&config, loaded[slot].function, parameters, NULL);
    if (status != CUDA_SUCCESS)
        fail(status, "cuLaunchKernelEx failed");
$scratch_end    return status;
}
""")

SCRATCH_BEGIN = Template("""\
    /* Memory in the order of the stream: launches in other streams have their own. */
    status = cuMemAllocAsync(&global_scratch, (size_t)$size * config.gridDimX * gridY * gridZ, stream);
    if (status != CUDA_SUCCESS)
        return fail(status, "cuMemAllocAsync failed: no scratch memory for the kernel");
""")

SCRATCH_END = """\
    if (status != CUDA_SUCCESS) {
        cuMemFreeAsync(global_scratch, stream);
        return status;
    }
    status = cuMemFreeAsync(global_scratch, stream);
    if (status != CUDA_SUCCESS)
        fail(status, "cuMemFreeAsync failed");
"""


_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile
    wchar_t while xor xor_eq
"""
"""Of C (C23) and of C++ (C++20): the header is for both."""

_TAKEN = """
    NULL linux unix i386 errno memset
    stream gridX gridY gridZ context slot status config attributes parameters maps storage
    global_scratch profile_scratch fail find_loaded encode_tiled loaded binary message
"""
"""Macros that compilers and headers define, and what the launcher's own code calls by these names."""

RESERVED = frozenset((_KEYWORDS + _TAKEN).split())

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OTHERS = re.compile(r"cu[A-Z]\w*|CU\w*|u?int\w*_t|size_t|U?INT\w+|TLX_\w*|_[A-Z_]\w*", re.ASCII)
"""Names of the CUDA driver, of stdint.h, of compilers, and macros of ours."""

PARTS = ("shape", "strides", "box", "map")
"""Suffixes of a descriptor's name, for the parameters that it becomes."""


def is_identifier(name: str) -> bool:
    """Return whether `name` can be a part of a C identifier."""
    return _IDENTIFIER.fullmatch(name) is not None


def c_names(names: Sequence[str], *, parts: Sequence[str] = PARTS, taken: Collection[str] = ()) -> list[str]:
    """A C name for each name of Python: the same where that is possible, else one that is made of it.

    A name with one of `parts` is no other one's either; those in `taken` are the launcher's own.
    """
    found: list[str] = []
    given: set[str] = set()
    for index, name in enumerate(names):
        name = name if is_identifier(name) else f"argument{index}"
        if name in RESERVED or name in taken or _OTHERS.fullmatch(name):
            name = f"arg_{name}"
        while not given.isdisjoint(_with_parts(name, parts)):
            name += "_"
        given.update(_with_parts(name, parts))
        found.append(name)
    return found


def _with_parts(name: str, parts: Sequence[str]) -> list[str]:
    return [name, *(f"{name}_{part}" for part in parts)]
