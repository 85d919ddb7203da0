// The driver's functions as the self test calls them, and its few helpers.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "types.h"

extern "C" {
CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDeviceGetAttribute(int*, int, CUdevice);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuMemAlloc_v2(CUdeviceptr*, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr*, size_t, CUmemoryPool, CUstream);
CUresult cuMemAllocAsync(CUdeviceptr*, size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemHostAlloc(void**, size_t, unsigned);
CUresult cuMemFreeHost(void*);
CUresult cuMemGetInfo_v2(size_t*, size_t*);
CUresult cuDeviceGraphMemTrim(CUdevice);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuStreamCreate(CUstream*, unsigned);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void*);
CUresult cuEventCreate(CUevent*, unsigned);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime_v2(float*, CUevent, CUevent);
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*);
CUresult cuFuncGetAttribute(int*, int, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                        void**);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode*, size_t*);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*);

void fake_cuda_set(const char*, const char*);
size_t fake_cuda_log_take(char*, size_t);
void fake_cuda_reset();

struct nvrtcProgram_st;
int nvrtcCreateProgram(nvrtcProgram_st**, const char*, const char*, int, const char* const*, const char* const*);
int nvrtcDestroyProgram(nvrtcProgram_st**);
int nvrtcCompileProgram(nvrtcProgram_st*, int, const char* const*);
int nvrtcGetPTXSize(nvrtcProgram_st*, size_t*);
int nvrtcGetPTX(nvrtcProgram_st*, char*);
int nvrtcGetCUBINSize(nvrtcProgram_st*, size_t*);
int nvrtcGetCUBIN(nvrtcProgram_st*, char*);
int nvrtcGetProgramLogSize(nvrtcProgram_st*, size_t*);
int nvrtcGetProgramLog(nvrtcProgram_st*, char*);
int nvrtcAddNameExpression(nvrtcProgram_st*, const char*);
int nvrtcGetLoweredName(nvrtcProgram_st*, const char*, const char**);
}

namespace selftest {

inline int failures = 0;

// Says what was found where it is not what was expected.
inline void expect(long long found, long long expected, const char* what, int line) {
    if (found != expected) {
        std::fprintf(stderr, "selftest line %d: %s is %lld, expected %lld\n", line, what, found, expected);
        ++failures;
    }
}

// The fixture: device 0, its context, the module of the self test's kernels.
struct Device {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    Device();
    ~Device();
    CUfunction function(const char* name) const;
};

// Launches with arguments of any type.
template <class... T>
CUresult launch(CUfunction function, unsigned grid, unsigned block, unsigned shared, CUstream stream, T... arguments) {
    void* list[] = {static_cast<void*>(&arguments)..., nullptr};
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, list, nullptr);
}

// A device block with these values.
template <class T>
CUdeviceptr upload(const std::vector<T>& values) {
    CUdeviceptr block = 0;
    cuMemAlloc_v2(&block, values.size() * sizeof(T));
    cuMemcpyHtoD_v2(block, values.data(), values.size() * sizeof(T));
    return block;
}

template <class T>
std::vector<T> download(CUdeviceptr block, size_t count) {
    std::vector<T> values(count);
    if (cuMemcpyDtoH_v2(values.data(), block, count * sizeof(T)) != CUDA_SUCCESS) {
        values.assign(count, T(-12345));
    }
    return values;
}

// The image of the self test's kernels; compiles them.
std::string compile(const char* source, std::vector<const char*> options, bool machine_code, int& result, std::string& log);
const char* kernels();

void test_kernels();
void test_language();
void test_driver();
void test_capture();

}  // namespace selftest

#define EXPECT(found, expected) selftest::expect(static_cast<long long>(found), static_cast<long long>(expected), #found, __LINE__)
