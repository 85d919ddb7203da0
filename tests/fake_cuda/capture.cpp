// See capture.h.

#include "capture.h"

#include <algorithm>
#include <set>

#include "settings.h"

namespace fake {

namespace {

using Guard = std::lock_guard<std::mutex>;
using Nodes = std::vector<std::shared_ptr<Node>>;

// The captures that go on. Belongs to the global lock.
std::set<std::shared_ptr<Capture>>& captures() {
    static std::set<std::shared_ptr<Capture>>& list = *new std::set<std::shared_ptr<Capture>>;
    return list;
}

// How this thread's calls look at captures (cuThreadExchangeStreamCaptureMode).
int& thread_mode() {
    static thread_local int mode = CU_CAPTURE_GLOBAL;
    return mode;
}

CUresult invalidate(Capture& capture, CUresult result) {
    capture.invalid = true;
    return result;
}

void add_unique(Nodes& to, const Nodes& from) {
    for (const auto& node : from) {
        if (std::find(to.begin(), to.end(), node) == to.end()) {
            to.push_back(node);
        }
    }
}

void join(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture) {
    stream->capture = capture;
    stream->last_nodes.clear();
    capture->streams.push_back(stream);
}

void leave_all(Capture& capture) {
    for (const auto& weak : capture.streams) {
        if (const auto stream = weak.lock()) {
            stream->capture = nullptr;
            stream->last_nodes.clear();
        }
    }
}

// Work for the null stream while a blocking stream of its context captures would tie itself to the capture.
CUresult check_implicit_locked(const Stream& stream) {
    if (!stream.is_null) {
        return CUDA_SUCCESS;
    }
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures()) {
        for (const auto& weak : capture->streams) {
            const auto other = weak.lock();
            if (other != nullptr && other->blocking && other->context == stream.context) {
                result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            }
        }
    }
    return result;
}

// Every node must be behind the origin's end: only then has each stream been joined.
bool joined(const Capture& capture) {
    std::set<const Node*> reached;
    Nodes open = capture.origin->last_nodes;
    while (!open.empty()) {
        const std::shared_ptr<Node> node = open.back();
        open.pop_back();
        if (reached.insert(node.get()).second) {
            open.insert(open.end(), node->after.begin(), node->after.end());
        }
    }
    return reached.size() == capture.graph->nodes.size();
}

}  // namespace

CUresult capture_work(const std::shared_ptr<Stream>& stream, const Work& work, bool& captured) {
    const Guard guard(global_lock());
    captured = stream->capture != nullptr;
    if (!captured) {
        return check_implicit_locked(*stream);
    }
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    auto node = std::make_shared<Node>();
    node->kind = work.kind;
    node->text = work.text;
    node->run = work.run;
    node->after = stream->last_nodes;
    node->function = work.function;
    node->memory = work.memory;
    stream->capture->graph->nodes.push_back(node);
    stream->last_nodes = {node};
    return CUDA_SUCCESS;
}

CUresult forbid_on_capturing(const std::shared_ptr<Stream>& stream) {
    const Guard guard(global_lock());
    if (stream->capture != nullptr) {
        return invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return check_implicit_locked(*stream);
}

CUresult forbid_while_capturing() {
    const Guard guard(global_lock());
    if (thread_mode() == CU_CAPTURE_RELAXED) {
        return CUDA_SUCCESS;
    }
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures()) {
        const bool own = capture->thread == std::this_thread::get_id() && capture->mode != CU_CAPTURE_RELAXED;
        const bool global = capture->mode == CU_CAPTURE_GLOBAL && thread_mode() == CU_CAPTURE_GLOBAL;
        if (own || global) {
            result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    return result;
}

CUresult forbid_while_context_captures(Context& context) {
    const Guard guard(global_lock());
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures()) {
        if (capture->origin->context == &context) {
            result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    return result;
}

bool is_capturing(const std::shared_ptr<Stream>& stream) {
    const Guard guard(global_lock());
    return stream->capture != nullptr;
}

void abandon_capture(const std::shared_ptr<Stream>& stream) {
    const Guard guard(global_lock());
    if (const std::shared_ptr<Capture> capture = stream->capture) {
        capture->invalid = true;
        if (capture->origin == stream.get()) {
            leave_all(*capture);
            captures().erase(capture);
        }
    }
}

CUresult capture_record(const std::shared_ptr<Stream>& stream, Event& event, bool& captured) {
    const Guard guard(global_lock());
    captured = stream->capture != nullptr;
    if (captured && stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (const CUresult result = check_implicit_locked(*stream)) {
        return result;
    }
    event.capture = stream->capture;
    event.nodes = stream->last_nodes;
    return CUDA_SUCCESS;
}

CUresult capture_wait(const std::shared_ptr<Stream>& stream, Event& event, bool& captured) {
    const Guard guard(global_lock());
    captured = stream->capture != nullptr || event.capture != nullptr;
    if (!captured) {
        return check_implicit_locked(*stream);
    }
    if (event.capture == nullptr) {
        return invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (captures().count(event.capture) == 0 || stream->is_null) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (event.capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (stream->capture == nullptr) {
        join(stream, event.capture);
    } else if (stream->capture != event.capture) {
        invalidate(*event.capture, CUDA_SUCCESS);
        return invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    add_unique(stream->last_nodes, event.nodes);
    return CUDA_SUCCESS;
}

CUresult forbid_on_captured(Event& event) {
    const Guard guard(global_lock());
    if (event.capture == nullptr) {
        return CUDA_SUCCESS;
    }
    return invalidate(*event.capture, CUDA_ERROR_CAPTURED_EVENT);
}

namespace {

CUresult begin(const std::shared_ptr<Stream>& stream, int mode) {
    static uint64_t next_id = 1;
    const Guard guard(global_lock());
    if (stream->capture != nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    auto capture = std::make_shared<Capture>();
    capture->id = next_id++;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.get();
    capture->graph = std::make_shared<Graph>();
    join(stream, capture);
    captures().insert(capture);
    return CUDA_SUCCESS;
}

CUresult end(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>& graph) {
    const Guard guard(global_lock());
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture == nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->origin != stream.get()) {
        return invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (capture->mode != CU_CAPTURE_RELAXED && capture->thread != std::this_thread::get_id()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    CUresult result = CUDA_SUCCESS;
    if (capture->invalid) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!joined(*capture)) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    } else {
        graph = capture->graph;
    }
    leave_all(*capture);
    captures().erase(capture);
    return result;
}

}  // namespace

}  // namespace fake

using fake::Call;

FAKE_API cuStreamBeginCapture_v2(CUstream handle, int mode) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (mode < CU_CAPTURE_GLOBAL || mode > CU_CAPTURE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream->is_null) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    fake::log("capture_begin stream=%u mode=%d", stream->id, mode);
    return fake::begin(stream, mode);
}

FAKE_API cuStreamEndCapture(CUstream handle, CUgraph* out) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (stream == nullptr || out == nullptr) {
        return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<fake::Graph> graph;
    const CUresult result = fake::end(stream, graph);
    fake::log("capture_end stream=%u result=%d nodes=%zu", stream->id, result, graph != nullptr ? graph->nodes.size() : 0);
    *out = nullptr;
    if (result == CUDA_SUCCESS) {
        fake::graphs().add(graph);
        *out = reinterpret_cast<CUgraph>(graph.get());
    }
    return result;
}

FAKE_API cuStreamGetCaptureInfo_v3(CUstream handle, int* status, uint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                                   const CUgraphEdgeData** edges, size_t* count) {
    static thread_local std::vector<CUgraphNode> last;
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (stream == nullptr || status == nullptr) {
        return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard<std::mutex> guard(fake::global_lock());
    const auto& capture = stream->capture;
    *status = capture == nullptr ? CU_CAPTURE_NONE : capture->invalid ? CU_CAPTURE_INVALIDATED : CU_CAPTURE_ACTIVE;
    if (*status != CU_CAPTURE_ACTIVE) {
        return CUDA_SUCCESS;
    }
    last.clear();
    for (const auto& node : stream->last_nodes) {
        last.push_back(reinterpret_cast<CUgraphNode>(node.get()));
    }
    if (id != nullptr) {
        *id = capture->id;
    }
    if (graph != nullptr) {
        *graph = reinterpret_cast<CUgraph>(capture->graph.get());
    }
    if (nodes != nullptr) {
        *nodes = last.data();
    }
    if (edges != nullptr) {
        *edges = nullptr;
    }
    if (count != nullptr) {
        *count = last.size();
    }
    return CUDA_SUCCESS;
}

FAKE_API cuStreamGetCaptureInfo_v2(CUstream handle, int* status, uint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                                   size_t* count) {
    return cuStreamGetCaptureInfo_v3(handle, status, id, graph, nodes, nullptr, count);
}

FAKE_API cuStreamIsCapturing(CUstream handle, int* status) {
    return cuStreamGetCaptureInfo_v3(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

FAKE_API cuThreadExchangeStreamCaptureMode(int* mode) {
    Call call(__func__, fake::Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (mode == nullptr || *mode < CU_CAPTURE_GLOBAL || *mode > CU_CAPTURE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, fake::thread_mode());
    return CUDA_SUCCESS;
}
