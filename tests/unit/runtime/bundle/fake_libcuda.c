/* libcuda for tests: hands every call of the C launcher to a function that the test sets, or returns CUDA_SUCCESS. */
#include <cuda.h>
#include <stddef.h>

#define FORWARD(name, parameters, arguments) \
    static CUresult(*name##_handler) parameters; \
    void set_##name(CUresult(*handler) parameters) \
    { \
        name##_handler = handler; \
    } \
    CUresult name parameters \
    { \
        return name##_handler == NULL ? CUDA_SUCCESS : name##_handler arguments; \
    }

FORWARD(cuCtxGetCurrent, (CUcontext * context), (context))
FORWARD(cuCtxGetDevice, (CUdevice * device), (device))
FORWARD(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device), (value, attribute, device))
FORWARD(cuDriverGetVersion, (int *version), (version))
FORWARD(cuModuleLoadData, (CUmodule * module, const void *image), (module, image))
FORWARD(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name), (function, module, name))
FORWARD(cuModuleUnload, (CUmodule module), (module))
FORWARD(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
        (function, attribute, value))
FORWARD(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config), (function, config))
FORWARD(cuMemAllocAsync, (CUdeviceptr * address, size_t size, CUstream stream), (address, size, stream))
FORWARD(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))
FORWARD(cuTensorMapEncodeTiled,
        (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
         const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
        (map, type, rank, address, dims, strides, box, steps, interleave, swizzle, promotion, fill))
FORWARD(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
        (config, function, parameters, extra))
