// Stream capture, graphs and their replay.

#include "selftest_api.h"

namespace selftest {

namespace {

struct Streams {
    CUstream main, side;
    CUevent fork, join;
    Streams() {
        EXPECT(cuStreamCreate(&main, 1), 0);
        EXPECT(cuStreamCreate(&side, 1), 0);
        EXPECT(cuEventCreate(&fork, 2), 0);
        EXPECT(cuEventCreate(&join, 2), 0);
    }
};

// out[i] = a[i] + b[i] on the main stream after a copy on the side stream, as a graph.
CUgraph capture_sum(const Device& device, const Streams& s, CUdeviceptr from, CUdeviceptr a, CUdeviceptr b, CUdeviceptr out) {
    CUgraph graph = nullptr;
    const CUfunction add = device.function("vector_add");
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_THREAD_LOCAL), 0);
    EXPECT(cuMemcpyDtoDAsync_v2(a, from, 256, s.main), 0);
    EXPECT(cuEventRecord(s.fork, s.main), 0);
    EXPECT(cuStreamWaitEvent(s.side, s.fork, 0), 0);
    EXPECT(cuMemsetD32Async(b, 0x40000000, 64, s.side), 0);
    EXPECT(cuEventRecord(s.join, s.side), 0);
    EXPECT(cuStreamWaitEvent(s.main, s.join, 0), 0);
    EXPECT(launch(add, 1, 64, 0, s.main, a, b, out, 64u), 0);
    EXPECT(cuStreamEndCapture(s.main, &graph), 0);
    return graph;
}

void replay() {
    const Device device;
    const Streams s;
    const std::vector<float> zeros(64);
    const CUdeviceptr from = upload(zeros), a = upload(zeros), b = upload(zeros), out = upload(zeros), other = upload(zeros);
    const CUgraph graph = capture_sum(device, s, from, a, b, out);
    size_t count = 0;
    EXPECT(cuGraphGetNodes(graph, nullptr, &count), 0);
    EXPECT(count, 3);
    EXPECT(download<float>(out, 64)[5], 0);
    CUgraphExec exec;
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    for (const float value : {1.0f, 5.0f}) {
        const std::vector<float> values(64, value);
        EXPECT(cuMemcpyHtoD_v2(from, values.data(), 256), 0);
        EXPECT(cuGraphLaunch(exec, s.main), 0);
        EXPECT(cuStreamSynchronize(s.main), 0);
        EXPECT(download<float>(out, 64)[63], value + 2);
    }
    const CUgraph second = capture_sum(device, s, from, a, b, other);
    CUgraphExecUpdateResultInfo info;
    EXPECT(cuGraphExecUpdate_v2(exec, second, &info), 0);
    EXPECT(cuGraphLaunch(exec, s.main), 0);
    EXPECT(cuStreamSynchronize(s.main), 0);
    EXPECT(download<float>(other, 64)[63], 7);
    EXPECT(cuGraphDestroy(graph), 0);
    EXPECT(cuGraphDestroy(second), 0);
    EXPECT(cuGraphExecDestroy(exec), 0);
}

// Calls that a capture does not allow, and what becomes of it.
void forbidden() {
    const Device device;
    const Streams s;
    CUgraph graph;
    CUdeviceptr block;
    EXPECT(cuStreamBeginCapture_v2(nullptr, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_GLOBAL), 0);
    EXPECT(cuStreamSynchronize(s.main), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(cuStreamEndCapture(s.main, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_GLOBAL), 0);
    EXPECT(cuMemAlloc_v2(&block, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(cuStreamEndCapture(s.main, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_RELAXED), 0);
    EXPECT(cuMemAlloc_v2(&block, 64), 0);
    EXPECT(cuEventRecord(s.fork, s.main), 0);
    EXPECT(cuEventQuery(s.fork), CUDA_ERROR_CAPTURED_EVENT);
    EXPECT(cuStreamEndCapture(s.main, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_RELAXED), 0);
    EXPECT(cuEventRecord(s.fork, s.main), 0);
    EXPECT(cuStreamWaitEvent(s.side, s.fork, 0), 0);
    EXPECT(cuMemsetD32Async(block, 0, 4, s.side), 0);
    EXPECT(cuStreamEndCapture(s.main, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT(cuMemsetD32Async(block, 0, 4, s.side), 0);
    EXPECT(cuStreamSynchronize(s.side), 0);
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_RELAXED), 0);
    EXPECT(cuEventRecord(s.join, s.side), 0);
    EXPECT(cuStreamWaitEvent(s.main, s.join, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    EXPECT(cuStreamEndCapture(s.main, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// Memory of a graph: the same address at each launch, kept for other graphs when it goes.
void memory_nodes() {
    const Device device;
    const Streams s;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr block;
    const CUdeviceptr out = upload(std::vector<int>(4));
    EXPECT(cuStreamBeginCapture_v2(s.main, CU_CAPTURE_THREAD_LOCAL), 0);
    EXPECT(cuMemAllocAsync(&block, 16, s.main), 0);
    EXPECT(cuMemsetD32Async(block, 9, 4, s.main), 0);
    EXPECT(cuMemcpyDtoDAsync_v2(out, block, 16, s.main), 0);
    EXPECT(cuMemFreeAsync(block, s.main), 0);
    EXPECT(cuStreamEndCapture(s.main, &graph), 0);
    size_t before = 0, after = 0, total = 0;
    EXPECT(cuMemGetInfo_v2(&before, &total), 0);
    EXPECT(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    for (int i = 0; i < 3; ++i) {
        EXPECT(cuGraphLaunch(exec, s.main), 0);
    }
    EXPECT(cuStreamSynchronize(s.main), 0);
    EXPECT(download<int>(out, 4)[3], 9);
    EXPECT(cuGraphDestroy(graph), 0);
    EXPECT(cuGraphExecDestroy(exec), 0);
    EXPECT(cuCtxSynchronize(), 0);
    EXPECT(cuMemGetInfo_v2(&after, &total), 0);
    // Kept for other graphs, until it is asked for.
    EXPECT(after - before, 0);
    EXPECT(cuDeviceGraphMemTrim(0), 0);
    EXPECT(cuMemGetInfo_v2(&after, &total), 0);
    EXPECT(after - before, 16);
    EXPECT(cuMemcpyDtoHAsync_v2(&total, block, 4, s.main), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

void test_capture() {
    replay();
    forbidden();
    memory_nodes();
}

}  // namespace selftest
