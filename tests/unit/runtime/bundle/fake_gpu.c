/* A GPU for the program of docs/ship-a-kernel.md: memory is the host's, and a launch runs that page's kernel here. */
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

CUresult cuInit(unsigned int flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)(uintptr_t)(0xC0 + device);
    return CUDA_SUCCESS;
}

static CUcontext current;
CUresult cuCtxSetCurrent(CUcontext context) { current = context; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = current; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
    *address = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
    memcpy((void *)(uintptr_t)to, from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
    memcpy(to, (void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)(uintptr_t)0xD0;
    return memcmp(image, "\177ELF", 4) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)(uintptr_t)0xF0;
    return strcmp(name, "axpy") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleUnload(CUmodule module) { (void)module; return CUDA_SUCCESS; }

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    const float *x = *(const float **)parameters[0], *y = *(const float **)parameters[1];
    float *out = *(float **)parameters[2];
    const int n = *(const int *)parameters[3];
    const float a = *(const float *)parameters[4];
    unsigned int index;
    (void)function;
    (void)extra;
    for (index = 0; index < config->gridDimX * 1024 && (int)index < n; ++index)
        out[index] = a * x[index] + y[index];
    return CUDA_SUCCESS;
}
