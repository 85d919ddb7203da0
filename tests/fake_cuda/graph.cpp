// Graphs made by capture, and their launches: one command that runs the nodes in the order of capture, which is an
// order of their dependencies.

#include <algorithm>

#include "capture.h"
#include "settings.h"
#include "stream.h"

namespace fake {

namespace {

using Nodes = std::vector<std::shared_ptr<Node>>;

CUresult run_nodes(const Nodes& nodes) {
    for (const auto& node : nodes) {
        if (const CUresult result = node->run()) {
            report("graph node '%s' failed with %d", node->text.c_str(), result);
            return result;
        }
    }
    return CUDA_SUCCESS;
}

constexpr int UPDATE_SUCCESS = 0;
constexpr int UPDATE_TOPOLOGY_CHANGED = 2;
constexpr int UPDATE_TYPE_CHANGED = 3;
constexpr int UPDATE_PARAMETERS_CHANGED = 5;

std::vector<size_t> places(const Nodes& nodes, const Node& node) {
    std::vector<size_t> list;
    for (const auto& before : node.after) {
        list.push_back(static_cast<size_t>(std::find(nodes.begin(), nodes.end(), before) - nodes.begin()));
    }
    std::sort(list.begin(), list.end());
    return list;
}

// Whether `fresh` can take the place of `old`, and the first node that is in the way.
int compare(const Nodes& old, const Nodes& fresh, const Node*& old_node, const Node*& fresh_node) {
    if (old.size() != fresh.size()) {
        return UPDATE_TOPOLOGY_CHANGED;
    }
    for (size_t i = 0; i < old.size(); ++i) {
        old_node = old[i].get();
        fresh_node = fresh[i].get();
        if (old_node->kind != fresh_node->kind) {
            return UPDATE_TYPE_CHANGED;
        }
        if (places(old, *old_node) != places(fresh, *fresh_node)) {
            return UPDATE_TOPOLOGY_CHANGED;
        }
        const bool memory = old_node->kind == NodeKind::MemAlloc || old_node->kind == NodeKind::MemFree;
        if (memory && old_node != fresh_node) {
            return UPDATE_PARAMETERS_CHANGED;
        }
    }
    old_node = nullptr;
    fresh_node = nullptr;
    return UPDATE_SUCCESS;
}

}  // namespace

}  // namespace fake

using fake::Call;
using fake::Needs;

FAKE_API cuGraphCreate(CUgraph* out, unsigned flags) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto graph = std::make_shared<fake::Graph>();
    fake::graphs().add(graph);
    *out = reinterpret_cast<CUgraph>(graph.get());
    return CUDA_SUCCESS;
}

FAKE_API cuGraphDestroy(CUgraph handle) {
    Call call(__func__, Needs::Init);
    const auto graph = fake::graphs().take(handle);
    return call.error != CUDA_SUCCESS ? call.error : graph == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto graph = fake::graphs().find(handle);
    if (graph == nullptr || count == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (nodes != nullptr) {
        for (size_t i = 0; i < *count; ++i) {
            nodes[i] = i < graph->nodes.size() ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get()) : nullptr;
        }
        *count = std::min(*count, graph->nodes.size());
    } else {
        *count = graph->nodes.size();
    }
    return CUDA_SUCCESS;
}

// The kind of a node of a graph that still exists.
FAKE_API cuGraphNodeGetType(CUgraphNode handle, int* kind) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    for (const auto& graph : fake::graphs().all()) {
        for (const auto& node : graph->nodes) {
            if (kind != nullptr && reinterpret_cast<CUgraphNode>(node.get()) == handle) {
                *kind = static_cast<int>(node->kind);
                return CUDA_SUCCESS;
            }
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

FAKE_API cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto graph = fake::graphs().find(handle);
    // Free on launch, upload, device launch, node priorities.
    if (out == nullptr || graph == nullptr || flags > 15) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto exec = std::make_shared<fake::GraphExec>();
    exec->nodes = graph->nodes;
    fake::graph_execs().add(exec);
    fake::log("graph_instantiate nodes=%zu", exec->nodes.size());
    *out = reinterpret_cast<CUgraphExec>(exec.get());
    return CUDA_SUCCESS;
}

FAKE_API cuGraphExecDestroy(CUgraphExec handle) {
    Call call(__func__, Needs::Init);
    const auto exec = fake::graph_execs().take(handle);
    return call.error != CUDA_SUCCESS ? call.error : exec == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE_API cuGraphUpload(CUgraphExec handle, CUstream stream) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (fake::stream_of(call, stream) == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return fake::graph_execs().find(handle) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE_API cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto exec = fake::graph_execs().find(handle);
    const auto stream = fake::stream_of(call, stream_handle);
    if (exec == nullptr || stream == nullptr) {
        return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    // A graph in a captured graph would be a child node, which nothing here needs.
    if (const CUresult result = fake::forbid_on_capturing(stream)) {
        return result;
    }
    std::unique_lock<std::mutex> guard(exec->mutex);
    const auto nodes = std::make_shared<fake::Nodes>(exec->nodes);
    guard.unlock();
    fake::log("graph_launch nodes=%zu stream=%u", nodes->size(), stream->id);
    // Launches of one executable graph run one after the other, as the real driver's do.
    auto run = [nodes, exec] {
        const std::lock_guard<std::mutex> one(exec->launching);
        return fake::run_nodes(*nodes);
    };
    fake::submit(stream, {run, call.later});
    return CUDA_SUCCESS;
}

FAKE_API cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto exec = fake::graph_execs().find(handle);
    const auto graph = fake::graphs().find(graph_handle);
    if (exec == nullptr || graph == nullptr || info == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard<std::mutex> guard(exec->mutex);
    const fake::Node* old_node = nullptr;
    const fake::Node* fresh_node = nullptr;
    info->result = fake::compare(exec->nodes, graph->nodes, old_node, fresh_node);
    info->errorNode = reinterpret_cast<CUgraphNode>(const_cast<fake::Node*>(fresh_node));
    info->errorFromNode = nullptr;
    fake::log("graph_update result=%d", info->result);
    if (info->result != fake::UPDATE_SUCCESS) {
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    exec->nodes = graph->nodes;
    return CUDA_SUCCESS;
}
