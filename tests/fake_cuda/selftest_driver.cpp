// The driver without kernels: order, asynchrony, memory, failures to order.

#include <chrono>
#include <cstring>
#include <thread>

#include "selftest_api.h"

namespace selftest {

namespace {

bool log_has(const char* text) {
    std::string log(fake_cuda_log_take(nullptr, 0), 0);
    fake_cuda_log_take(log.data(), log.size());
    return log.find(text) != std::string::npos;
}

// Commands run later than they are called for, streams order them, and events tie streams together.
void order_and_events() {
    const Device device;
    fake_cuda_set("SLOW_NS", "20000000");
    CUstream first, second;
    CUevent start, end;
    EXPECT(cuStreamCreate(&first, 1), 0);
    EXPECT(cuStreamCreate(&second, 1), 0);
    EXPECT(cuEventCreate(&start, 0), 0);
    EXPECT(cuEventCreate(&end, 0), 0);
    void* pinned = nullptr;
    EXPECT(cuMemHostAlloc(&pinned, 64, 0), 0);
    CUdeviceptr block;
    EXPECT(cuMemAllocAsync(&block, 64, first), 0);
    EXPECT(cuEventRecord(start, first), 0);
    EXPECT(cuMemsetD32Async(block, 7, 16, first), 0);
    EXPECT(cuEventRecord(end, first), 0);
    EXPECT(cuEventQuery(end), CUDA_ERROR_NOT_READY);
    EXPECT(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
    EXPECT(cuStreamWaitEvent(second, end, 0), 0);
    EXPECT(cuMemcpyDtoHAsync_v2(pinned, block, 64, second), 0);
    EXPECT(static_cast<int*>(pinned)[15], -1);
    EXPECT(cuStreamSynchronize(second), 0);
    EXPECT(static_cast<int*>(pinned)[15], 7);
    float milliseconds = 0;
    EXPECT(cuEventElapsedTime_v2(&milliseconds, start, end), 0);
    EXPECT(milliseconds > 10.0f, 1);
    EXPECT(cuMemFreeAsync(block, second), 0);
    EXPECT(cuMemFreeAsync(block, second), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFreeHost(pinned), 0);
    EXPECT(cuStreamSynchronize(nullptr), 0);
    fake_cuda_set("SLOW_NS", nullptr);
}

// Commands that are told to meet do so on two streams.
void meetings() {
    const Device device;
    log_has("");  // somebody reads from here on
    CUstream first, second;
    EXPECT(cuStreamCreate(&first, 1), 0);
    EXPECT(cuStreamCreate(&second, 1), 0);
    const CUdeviceptr blocks = upload(std::vector<int>(4));
    fake_cuda_set("MEET", "memset bytes=4,memset bytes=8");
    EXPECT(cuMemsetD32Async(blocks, 1, 1, first), 0);
    EXPECT(cuMemsetD32Async(blocks + 8, 2, 2, second), 0);
    EXPECT(cuStreamSynchronize(first), 0);
    EXPECT(cuStreamSynchronize(second), 0);
    EXPECT(log_has("met memset bytes=4,memset bytes=8\n"), 1);
    fake_cuda_set("MEET", nullptr);
    EXPECT(download<int>(blocks, 4)[3], 2);
}

// A stream that uses another's allocation without waiting for it is found out.
void unordered_use() {
    const Device device;
    CUstream first, second;
    EXPECT(cuStreamCreate(&first, 1), 0);
    EXPECT(cuStreamCreate(&second, 1), 0);
    EXPECT(cuLaunchHostFunc(first, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr), 0);
    CUdeviceptr block;
    EXPECT(cuMemAllocAsync(&block, 64, first), 0);
    EXPECT(cuMemsetD32Async(block, 7, 16, second), 0);
    EXPECT(cuStreamSynchronize(second), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Host functions run in order, and must not call the driver.
void host_functions() {
    const Device device;
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, 1), 0);
    int result = -1;
    EXPECT(cuLaunchHostFunc(stream, [](void* data) { *static_cast<int*>(data) = cuCtxSynchronize(); }, &result), 0);
    EXPECT(cuStreamSynchronize(stream), 0);
    EXPECT(result, CUDA_ERROR_NOT_PERMITTED);
}

// The null stream waits for blocking streams.
void null_stream() {
    const Device device;
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, 0), 0);
    EXPECT(cuLaunchHostFunc(stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }, nullptr), 0);
    const CUdeviceptr block = upload(std::vector<int>(4));
    EXPECT(cuMemsetD32Async(block, 3, 4, stream), 0);
    EXPECT(download<int>(block, 4)[3], 3);
}

void memory_limits() {
    const Device device;
    fake_cuda_set("FAKE_CUDA_MEMORY", "1048576");
    size_t free = 0, total = 0;
    EXPECT(cuMemGetInfo_v2(&free, &total), 0);
    EXPECT(total, 1048576);
    EXPECT(free, 1048576);
    CUdeviceptr big, small;
    CUmemoryPool pool;
    EXPECT(cuDeviceGetDefaultMemPool(&pool, 0), 0);
    EXPECT(cuMemAllocFromPoolAsync(&big, 1000000, pool, nullptr), 0);
    EXPECT(cuMemAlloc_v2(&small, 100000), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMemFreeAsync(big, nullptr), 0);
    EXPECT(cuMemAlloc_v2(&small, 100000), 0);
    EXPECT(cuMemAlloc_v2(&big, 0), CUDA_ERROR_INVALID_VALUE);
    std::vector<char> bytes(100001);
    EXPECT(cuMemcpyDtoH_v2(bytes.data(), small, 100001), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoH_v2(bytes.data(), small + 1, 99999), 0);
    EXPECT(bytes[0], -1);
    EXPECT(cuMemcpyHtoD_v2(small, reinterpret_cast<void*>(small), 4), CUDA_ERROR_INVALID_VALUE);
    fake_cuda_set("FAKE_CUDA_MEMORY", nullptr);
}

void ordered_failures() {
    const Device device;
    CUdeviceptr block;
    fake_cuda_set("FAKE_CUDA_FAIL", "cuMemAlloc:2:2;cuMemAlloc_v2:4:719");
    EXPECT(cuMemAlloc_v2(&block, 4), 0);
    EXPECT(cuMemAlloc_v2(&block, 4), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMemAlloc_v2(&block, 4), 0);
    EXPECT(cuMemAlloc_v2(&block, 4), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    fake_cuda_reset();
    EXPECT(cuCtxSynchronize(), 0);
    fake_cuda_set("FAKE_CUDA_FAIL_LATER", "cuMemsetD32Async:2:700");
    block = upload(std::vector<int>(4));
    EXPECT(cuMemsetD32Async(block, 1, 4, nullptr), 0);
    EXPECT(cuMemsetD32Async(block, 2, 4, nullptr), 0);
    EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(cuMemAlloc_v2(&block, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(log_has("memset width=32 count=4 stream=0"), 1);
    fake_cuda_reset();
}

// A context that nobody holds any more is no context; the next one starts afresh.
void contexts() {
    EXPECT(cuCtxSetCurrent(nullptr), 0);
    CUdeviceptr block;
    EXPECT(cuMemAlloc_v2(&block, 4), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext context;
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0), 0);
    EXPECT(cuDevicePrimaryCtxRetain(&context, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuCtxSetCurrent(context), 0);
    EXPECT(cuMemAlloc_v2(&block, 4), 0);
    EXPECT(cuDevicePrimaryCtxRelease_v2(0), 0);
    EXPECT(cuMemAlloc_v2(&block, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuCtxSetCurrent(nullptr), 0);
}

// Pageable memory is read during the call, pinned memory when the stream gets there.
void kinds_of_host_memory() {
    const Device device;
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, 1), 0);
    void* pinned = nullptr;
    EXPECT(cuMemHostAlloc(&pinned, 4, 0), 0);
    int pageable = 1;
    std::memcpy(pinned, &pageable, 4);
    const CUdeviceptr blocks = upload(std::vector<int>(2));
    EXPECT(cuLaunchHostFunc(stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }, nullptr), 0);
    EXPECT(cuMemcpyHtoDAsync_v2(blocks, &pageable, 4, stream), 0);
    EXPECT(cuMemcpyHtoDAsync_v2(blocks + 4, pinned, 4, stream), 0);
    pageable = 2;
    std::memcpy(pinned, &pageable, 4);
    EXPECT(cuStreamSynchronize(stream), 0);
    EXPECT(download<int>(blocks, 2)[0], 1);
    EXPECT(download<int>(blocks, 2)[1], 2);
}

}  // namespace

void test_driver() {
    order_and_events();
    meetings();
    unordered_use();
    host_functions();
    null_stream();
    memory_limits();
    ordered_failures();
    contexts();
    kinds_of_host_memory();
}

}  // namespace selftest
