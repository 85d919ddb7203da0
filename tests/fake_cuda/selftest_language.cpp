// The runtime compiler: options, errors, images; and the language's functions.

#include <cstring>

#include "selftest_api.h"

namespace selftest {

namespace {

void options() {
    int result = 0;
    std::string log;
    compile("int x;", {"--no-such-option"}, false, result, log);
    EXPECT(result, 5);
    EXPECT(log.find("--no-such-option") != std::string::npos, 1);
    compile("int x;", {"-arch=sm_12"}, false, result, log);
    EXPECT(result, 5);
    compile("extern \"C\" __global__ void f(int* p) { *p = undeclared; }", {}, false, result, log);
    EXPECT(result, 6);
    EXPECT(log.find("undeclared") != std::string::npos, 1);
    EXPECT(log.find("selftest.cu:1") != std::string::npos, 1);
    compile("#include <stdint.h>\n", {}, false, result, log);
    EXPECT(result, 6);
    const char* source =
        "#if NAME != 3 || __CUDA_ARCH__ != 800 || !defined(__CUDACC_RTC__) || defined(__CUDACC__)\n#error macros\n#endif\n"
        "template <class T> __global__ void fill(T*) {}";
    const std::string ptx = compile(source, {"-D", "NAME=3", "-arch", "compute_80", "--use_fast_math", "-Dclass_name=T"}, false,
                                    result, log);
    EXPECT(result, 0);
    EXPECT(std::strlen(ptx.c_str()) + 1, ptx.size());
}

// Machine code runs on its own major version, text on all devices that are as new.
void images() {
    const Device device;
    int result = 0;
    std::string log;
    const char* source = "template <class T> __global__ void fill(T* p, T v) { *p = v; }";
    const struct {
        const char* option;
        bool machine_code;
        CUresult expected;
    } cases[] = {
        {"-arch=sm_80", true, CUDA_ERROR_NO_BINARY_FOR_GPU}, {"-arch=sm_90", true, 0},
        {"-arch=compute_80", false, 0},                      {"-arch=compute_100", false, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    for (const auto& c : cases) {
        const std::string image = compile(source, {c.option}, c.machine_code, result, log);
        EXPECT(result, 0);
        CUmodule module;
        EXPECT(cuModuleLoadData(&module, image.c_str()), c.expected);
        CUfunction function;
        if (c.expected == 0) {
            EXPECT(cuModuleGetFunction(&function, module, "fake_expression_0"), 0);
            EXPECT(cuModuleGetFunction(&function, module, "fill"), CUDA_ERROR_NOT_FOUND);
            EXPECT(cuModuleUnload(module), 0);
        }
    }
    CUmodule module;
    EXPECT(cuModuleLoadData(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
}

void shared_memory_limits() {
    const Device device;
    const CUfunction dynamic = device.function("with_barrier"), fixed = device.function("big_static");
    const CUdeviceptr out = upload(std::vector<float>(64));
    EXPECT(launch(dynamic, 1, 64, 48 * 1024, nullptr, out, out), 0);
    EXPECT(launch(dynamic, 1, 64, 48 * 1024 + 1, nullptr, out, out), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(dynamic, 8, 228 * 1024), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(dynamic, 8, 100 * 1024), 0);
    EXPECT(launch(dynamic, 1, 64, 100 * 1024, nullptr, out, out), 0);
    int bytes = 0;
    EXPECT(cuFuncGetAttribute(&bytes, 1, fixed), 0);
    EXPECT(bytes, 32768);
    EXPECT(launch(fixed, 1, 64, 16384, nullptr, out), 0);
    EXPECT(launch(fixed, 1, 64, 16385, nullptr, out), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch(fixed, 1, 1025, 0, nullptr, out), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch(fixed, 0, 64, 0, nullptr, out), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuCtxSynchronize(), 0);
}

// Each case leaves 0 in its place, or what it found.
void functions() {
    const Device device;
    int result = 0;
    std::string log;
    const char* source = R"CUDA(
#define CASE(n, good) if (!(good)) out[n] = 1
template <class T> __global__ void fill(T*, T) {}
extern "C" {
struct __align__(16) Four { float v[4]; };
static __device__ __noinline__ int helper(int x) { return x * 2; }
__global__ void __launch_bounds__(64, 2) language(int* out) {
    const int lane = threadIdx.x & 31;
    CASE(0, __shfl_up_sync(0xffffffffu, lane, 3) == (lane < 3 ? lane : lane - 3));
    CASE(1, __shfl_down_sync(0xffffffffu, lane, 3, 8) == ((lane & 7) + 3 > 7 ? lane : lane + 3));
    CASE(2, __shfl_xor_sync(0xffffffffu, (double)lane, 5) == (double)(lane ^ 5));
    CASE(3, __ballot_sync(0xffffffffu, lane % 3 == 0) == 0x49249249u);
    CASE(4, __all_sync(0xffffffffu, 1) && !__any_sync(0xffffffffu, 0));
    CASE(5, __reduce_add_sync(0xffffffffu, lane) == 496);
    CASE(6, __match_any_sync(0xffffffffu, lane & 1) == (lane & 1 ? 0xaaaaaaaau : 0x55555555u));
    CASE(7, __syncthreads_count(lane == 1) == 2 && __syncthreads_or(lane == 40) == 0);
    CASE(8, __dp4a(0x01ff02fe, 0x03040506, 10) == 10 + 3 - 4 + 10 - 12);
    CASE(9, __popc(0xf0f0) == 8 && __clz(1) == 31 && __ffs(8) == 4 && __brev(1) == 0x80000000u);
    CASE(10, __umulhi(0x80000000u, 4) == 2 && __mul64hi(-1ll, 1ll) == -1ll);
    CASE(11, __float2int_rz(-1.5f) == -1 && __float2int_rn(2.5f) == 2 && __float2uint_rz(-3.0f) == 0 && __float2int_rz(1e20f) == 2147483647);
    CASE(12, erfinvf(erff(0.5f)) > 0.499999f && erfinvf(erff(0.5f)) < 0.500001f && isinf(erfinv(1.0)));
    CASE(13, fmaxf(1.0f, __int_as_float(0x7fffffff)) == 1.0f && isnan(sqrtf(-1.0f)) && signbit(-0.0f));
    CASE(14, min(3, 5) == 3 && max(3u, 5) == 5u && abs(-2.5f) == 2.5f && min(2ll, 3ll) == 2);
    CASE(15, make_float4(1, 2, 3, 4).w == 4 && sizeof(float4) == 16 && alignof(float4) == 16 && alignof(float3) == 4 && sizeof(Four) == 16);
    CASE(16, warpSize == 32 && blockDim.x == 64 && gridDim.y == 1 && helper(3) == 6);
    CASE(17, __byte_perm(0x33221100u, 0x77665544u, 0x7531) == 0x77553311u && __funnelshift_l(0x80000000u, 1u, 1) == 3u);
    __shared__ int before[1];
    if (threadIdx.x == 0) before[0] = 0;
    __syncthreads();
    atomicAdd(before, 1);
    atomicCAS(before + 0, -7, 9);
    __syncthreads();
    CASE(18, before[0] == 64);
    unsigned half = __ballot_sync(lane < 16 ? 0xffffu : 0xffff0000u, 1);
    CASE(19, half == (lane < 16 ? 0xffffu : 0xffff0000u));
}
}
)CUDA";
    const std::string image = compile(source, {"-arch=sm_90"}, true, result, log);
    EXPECT(result, 0);
    if (result != 0) {
        std::fprintf(stderr, "%s\n", log.c_str());
        return;
    }
    CUmodule module;
    CUfunction language;
    EXPECT(cuModuleLoadData(&module, image.data()), 0);
    EXPECT(cuModuleGetFunction(&language, module, "language"), 0);
    const CUdeviceptr out = upload(std::vector<int>(20));
    EXPECT(launch(language, 2, 64, 0, nullptr, out), 0);
    EXPECT(launch(language, 2, 96, 0, nullptr, out), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    const std::vector<int> cases = download<int>(out, 20);
    for (size_t i = 0; i < cases.size(); ++i) {
        if (cases[i] != 0) {
            std::fprintf(stderr, "selftest: case %zu of the language is %d\n", i, cases[i]);
            ++failures;
        }
    }
}

}  // namespace

void test_language() {
    options();
    images();
    shared_memory_limits();
    functions();
}

}  // namespace selftest
