// The self test: runs with LD_LIBRARY_PATH set to the folder of the fake libraries. See build.sh.

#include "selftest_api.h"

#include <cstring>

namespace selftest {

const char* kernels() {
    return R"CUDA(
#include "types.cuh"
__constant__ float scale[2] = {1.0f, 2.0f};
__device__ unsigned counter;

extern "C" __global__ void __launch_bounds__(256) vector_add(const f32* a, const f32* b, f32* c, u32 n) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

__device__ __forceinline__ f32 warp_sum(f32 v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

template <int N>
__device__ f32 block_sum(f32 v) {
    __shared__ alignas(16) f32 part[N];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) v = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
    return v;
}

extern "C" __global__ void reduce(const f32* in, f32* out, int n) {
    f32 v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += in[i];
    v = block_sum<32>(v);
    if (threadIdx.x == 0) *out = v;
}

extern "C" __global__ void transpose(const f32* in, f32* out, int n) {
    __shared__ f32 tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void no_barrier(const f32* in, f32* out) {
    extern __shared__ __align__(16) f32 row[];
    row[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void with_barrier(const f32* in, f32* out) {
    extern __shared__ __align__(16) f32 row[];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void half_barrier() { if (threadIdx.x < 16) __syncthreads(); else { __shfl_sync(0xffffffffu, 1, 0); } }
extern "C" __global__ void two_barriers() { if (threadIdx.x < 16) __syncthreads();
    else __syncthreads(); }
extern "C" __global__ void lonely_shuffle(int* out) { if (threadIdx.x != 3) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0); else __syncthreads(); }
extern "C" __global__ void early_exit(int* out) { if (threadIdx.x >= 8) return; __syncthreads(); out[threadIdx.x] = __ballot_sync(0xffu, threadIdx.x & 1); }
extern "C" __global__ void overrun(f32* out, int n) { out[n + threadIdx.x] = 1.0f; }
extern "C" __global__ void shared_overrun() { extern __shared__ u8 bytes[]; bytes[blockDim.x + threadIdx.x] = 1; }
extern "C" __global__ void wild(int* out) { if (threadIdx.x == 5) *(int*)8 = 1; out[threadIdx.x] = 1; }
extern "C" __global__ void trap() { if (blockIdx.x == 1) __trap(); }
extern "C" __global__ void check(int limit) { assert(int(threadIdx.x) < limit); }
extern "C" __global__ void divide(int* out, int by) { out[threadIdx.x] = 100 / by; }
extern "C" __global__ void deep(int* out, int n) { volatile char big[1 << 20]; for (int i = 0; i < (1 << 20); i += 512) big[i] = i; out[0] = big[n]; }
extern "C" __global__ void count(unsigned* out) { atomicAdd(&counter, 1u); atomicAdd(out, 2u); atomicMax(out + 1, threadIdx.x); }
extern "C" __global__ void scaled(f32* out) { out[threadIdx.x] = scale[threadIdx.x & 1]; }
extern "C" __global__ void many(Pod pod, const i8* p, f64 d, short s, f32* out) { out[0] = pod.a + pod.b[2] + p[1] + f32(d) + s; }
extern "C" __global__ void uninitialised_shared(f32* out) { __shared__ f32 x[4]; out[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void big_static(f32* out) { __shared__ f32 x[8192]; x[threadIdx.x] = 1; __syncthreads(); out[threadIdx.x] = x[0]; }
extern "C" __global__ void forever(volatile int* out) { while (out[0] == 0) {} }
template <class T> __global__ void fill(T* out, T value) { out[threadIdx.x] = value; }
)CUDA";
}

std::string compile(const char* source, std::vector<const char*> options, bool machine_code, int& result, std::string& log) {
    const char* header =
        "typedef unsigned char u8; typedef signed char i8; typedef unsigned u32; typedef float f32; typedef double f64;\n"
        "typedef long long int64_t; typedef unsigned int uint32_t;\nstruct Pod { int a; float b[3]; };\n";
    const char* name = "types.cuh";
    nvrtcProgram_st* program = nullptr;
    EXPECT(nvrtcCreateProgram(&program, source, "selftest.cu", 1, &header, &name), 0);
    EXPECT(nvrtcAddNameExpression(program, "fill<float>"), 0);
    result = nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    size_t size = 0;
    EXPECT(nvrtcGetProgramLogSize(program, &size), 0);
    log.resize(size);
    EXPECT(nvrtcGetProgramLog(program, log.data()), 0);
    EXPECT(machine_code ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size), 0);
    std::string image(size, 0);
    if (size > 0) {
        EXPECT(machine_code ? nvrtcGetCUBIN(program, image.data()) : nvrtcGetPTX(program, image.data()), 0);
    }
    const char* lowered = nullptr;
    EXPECT(nvrtcGetLoweredName(program, "fill<float>", &lowered), result == 0 ? 0 : 9);
    EXPECT(nvrtcDestroyProgram(&program), 0);
    return image;
}

Device::Device() {
    fake_cuda_reset();
    EXPECT(cuInit(0), 0);
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0), 0);
    EXPECT(cuCtxSetCurrent(context), 0);
    int result = 0;
    std::string log;
    const std::string image = compile(kernels(), {"--gpu-architecture=sm_90", "--std=c++17", "-DX=1"}, true, result, log);
    if (result != 0) {
        std::fprintf(stderr, "%s\n", log.c_str());
        std::exit(1);
    }
    EXPECT(cuModuleLoadData(&module, image.data()), 0);
}

Device::~Device() {
    cuDevicePrimaryCtxRelease_v2(0);
    cuCtxSetCurrent(nullptr);
}

CUfunction Device::function(const char* name) const {
    CUfunction function = nullptr;
    expect(cuModuleGetFunction(&function, module, name), 0, name, __LINE__);
    return function;
}

}  // namespace selftest

// The arguments name groups of tests; without any, all run. (A thread sanitizer can follow `driver`, which has no
// kernels and so no fibers.)
int main(int count, char** arguments) {
    const struct {
        const char* name;
        void (*run)();
    } groups[] = {{"kernels", selftest::test_kernels},
                  {"language", selftest::test_language},
                  {"driver", selftest::test_driver},
                  {"capture", selftest::test_capture}};
    for (const auto& group : groups) {
        bool chosen = count < 2;
        for (int i = 1; i < count; ++i) {
            chosen = chosen || std::strcmp(arguments[i], group.name) == 0;
        }
        if (chosen) {
            group.run();
        }
    }
    if (selftest::failures == 0) {
        std::puts("fake cuda: self test passed");
    }
    return selftest::failures == 0 ? 0 : 1;
}
