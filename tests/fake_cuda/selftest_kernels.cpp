// Kernels that run, and kernels whose faults must be found.

#include <cmath>
#include <numeric>

#include "selftest_api.h"

namespace selftest {

namespace {

void vector_add() {
    const Device device;
    const size_t n = 1000;
    std::vector<float> a(n), b(n);
    for (size_t i = 0; i < n; ++i) {
        a[i] = static_cast<float>(i);
        b[i] = static_cast<float>(2 * i);
    }
    const CUdeviceptr da = upload(a), db = upload(b), dc = upload(a);
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, 1), 0);
    EXPECT(launch(device.function("vector_add"), 4, 256, 0, stream, da, db, dc, static_cast<unsigned>(n)), 0);
    EXPECT(cuStreamSynchronize(stream), 0);
    EXPECT(download<float>(dc, n)[999], 2997);
    EXPECT(launch(device.function("vector_add"), 4, 512, 0, stream, da, db, dc, static_cast<unsigned>(n)),
           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT(cuStreamDestroy_v2(stream), 0);
    EXPECT(cuMemFree_v2(da), 0);
    EXPECT(cuMemFree_v2(da), CUDA_ERROR_INVALID_VALUE);
}

void reductions() {
    const Device device;
    std::vector<float> values(5000);
    std::iota(values.begin(), values.end(), 0.0f);
    const CUdeviceptr in = upload(values), out = upload(std::vector<float>(1));
    for (const unsigned threads : {32u, 256u, 1024u}) {
        EXPECT(launch(device.function("reduce"), 1, threads, 0, nullptr, in, out, 5000), 0);
        EXPECT(std::fabs(download<float>(out, 1)[0] - 12497500.0f) < 8.0f, 1);
    }
}

void transposition() {
    const Device device;
    std::vector<float> values(64 * 64);
    std::iota(values.begin(), values.end(), 0.0f);
    CUdeviceptr in = upload(values), out = upload(values);
    int n = 64;
    void* arguments[] = {&in, &out, &n};
    EXPECT(cuLaunchKernel(device.function("transpose"), 2, 2, 1, 32, 32, 1, 0, nullptr, arguments, nullptr), 0);
    const std::vector<float> result = download<float>(out, values.size());
    int wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        wrong += result[i] != values[i % 64 * 64 + i / 64];
    }
    EXPECT(wrong, 0);
}

// Without its barrier a kernel reads what is not yet written; with it, it does not.
void missing_barrier() {
    const Device device;
    std::vector<float> values(64);
    std::iota(values.begin(), values.end(), 1.0f);
    const CUdeviceptr in = upload(values), out = upload(values);
    for (const char* name : {"no_barrier", "with_barrier"}) {
        EXPECT(launch(device.function(name), 1, 64, 256, nullptr, in, out), 0);
        const std::vector<float> result = download<float>(out, 64);
        int right = 0;
        for (size_t i = 0; i < 64; ++i) {
            right += result[i] == values[63 - i];
        }
        EXPECT(right == 64, name[0] == 'w');
    }
    EXPECT(launch(device.function("uninitialised_shared"), 1, 4, 0, nullptr, out), 0);
    EXPECT(std::isnan(download<float>(out, 4)[2]), 1);
}

// A fault of execution: found at synchronise, and then everywhere.
template <class... T>
void fault(const char* name, CUresult expected, unsigned grid, unsigned block, unsigned shared, T... arguments) {
    const Device device;
    const CUdeviceptr out = upload(std::vector<float>(32));
    EXPECT(launch(device.function(name), grid, block, shared, nullptr, arguments...), 0);
    const CUresult found = cuCtxSynchronize();
    expect(found, expected, name, __LINE__);
    EXPECT(cuMemFree_v2(out), expected);
}

template <class... T>
void fault_with_block(const char* name, CUresult expected, unsigned block, T... arguments) {
    const Device device;
    const CUdeviceptr out = upload(std::vector<float>(32));
    EXPECT(launch(device.function(name), 1, block, 0, nullptr, out, arguments...), 0);
    expect(cuCtxSynchronize(), expected, name, __LINE__);
}

void faults() {
    fault("half_barrier", CUDA_ERROR_LAUNCH_FAILED, 1, 32, 0);
    fault("two_barriers", CUDA_ERROR_LAUNCH_FAILED, 1, 32, 0);
    fault("trap", CUDA_ERROR_LAUNCH_FAILED, 2, 32, 0);
    fault("check", CUDA_ERROR_ASSERT, 1, 32, 0, 31);
    fault("check", CUDA_SUCCESS, 1, 32, 0, 32);
    fault("shared_overrun", CUDA_ERROR_ILLEGAL_ADDRESS, 1, 32, 32);
    fault("shared_overrun", CUDA_SUCCESS, 1, 32, 64);
    fault_with_block("lonely_shuffle", CUDA_ERROR_LAUNCH_FAILED, 32);
    fault_with_block("early_exit", CUDA_SUCCESS, 32);
    fault_with_block("overrun", CUDA_ERROR_ILLEGAL_ADDRESS, 1, 32);
    fault_with_block("overrun", CUDA_ERROR_ILLEGAL_ADDRESS, 1, -1);
    fault_with_block("overrun", CUDA_SUCCESS, 1, 31);
    fault_with_block("wild", CUDA_ERROR_ILLEGAL_ADDRESS, 32);
    fault_with_block("divide", CUDA_ERROR_LAUNCH_FAILED, 1, 0);
    fault_with_block("divide", CUDA_SUCCESS, 1, 7);
    fault_with_block("deep", CUDA_ERROR_ILLEGAL_ADDRESS, 1, 512);
}

// With a page behind each block, a write far behind its end faults.
void guard_pages() {
    fake_cuda_reset();
    const Device device;
    fake_cuda_set("FAKE_CUDA_GUARD", "1");
    const CUdeviceptr out = upload(std::vector<float>(32));
    EXPECT(launch(device.function("overrun"), 1, 1, 0, nullptr, out, 31), 0);
    EXPECT(cuCtxSynchronize(), 0);
    EXPECT(launch(device.function("overrun"), 1, 1, 0, nullptr, out, 400), 0);
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    fake_cuda_reset();
}

// A kernel that waits for what never comes ends with an error.
void endless() {
    const Device device;
    fake_cuda_set("TIMEOUT", "1");
    const CUdeviceptr out = upload(std::vector<int>(1));
    EXPECT(launch(device.function("forever"), 1, 1, 0, nullptr, out), 0);
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
    fake_cuda_reset();
}

void use_after_free() {
    const Device device;
    const CUdeviceptr out = upload(std::vector<float>(32));
    EXPECT(cuMemFree_v2(out), 0);
    float value = 0;
    EXPECT(cuMemcpyDtoH_v2(&value, out, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch(device.function("overrun"), 1, 1, 0, nullptr, out, 0), 0);
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void variables() {
    const Device device;
    CUdeviceptr scale = 0, counter = 0;
    size_t size = 0;
    EXPECT(cuModuleGetGlobal_v2(&scale, &size, device.module, "scale"), 0);
    EXPECT(size, 8);
    EXPECT(cuModuleGetGlobal_v2(&counter, nullptr, device.module, "counter"), 0);
    EXPECT(cuModuleGetGlobal_v2(&counter, nullptr, device.module, "nothing"), CUDA_ERROR_NOT_FOUND);
    const float values[] = {3.0f, 4.0f};
    EXPECT(cuMemcpyHtoD_v2(scale, values, 8), 0);
    const CUdeviceptr out = upload(std::vector<float>(4));
    EXPECT(launch(device.function("scaled"), 1, 4, 0, nullptr, out), 0);
    EXPECT(download<float>(out, 4)[3], 4);
    EXPECT(cuMemsetD8_v2(out, 0, 16), 0);
    EXPECT(launch(device.function("count"), 3, 100, 0, nullptr, out), 0);
    EXPECT(download<unsigned>(counter, 1)[0], 300);
    EXPECT(download<unsigned>(out, 1)[0], 600);
    EXPECT(download<unsigned>(out, 2)[1], 99);
}

void arguments() {
    const Device device;
    struct Pod {
        int a;
        float b[3];
    } pod = {1, {2, 3, 4}};
    const CUdeviceptr bytes = upload(std::vector<signed char>{5, -6}), out = upload(std::vector<float>(1));
    EXPECT(launch(device.function("many"), 1, 1, 0, nullptr, pod, bytes, 0.5, static_cast<short>(-2), out), 0);
    EXPECT(download<float>(out, 1)[0] == 1 + 4 - 6 + 0.5f - 2, 1);
    EXPECT(launch(device.function("fake_expression_0"), 1, 1, 0, nullptr, out, 7.0f), 0);
    EXPECT(download<float>(out, 1)[0], 7);
}

}  // namespace

void test_kernels() {
    vector_add();
    reductions();
    transposition();
    missing_barrier();
    faults();
    guard_pages();
    endless();
    use_after_free();
    variables();
    arguments();
}

}  // namespace selftest
