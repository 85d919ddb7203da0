// The objects behind the driver's handles, and what every call of the interface does first.
//
// Ownership: a handle is the address of an object in its table (`Table`), which shares ownership with the commands
// that still use it; destroying a handle takes it out of the table only. Locks, in the order in which they may be
// taken: `global_lock` (tables, capture), a context's `submit`, a stream's `mutex`, the memory's own. Nothing here is
// destroyed at the end of the process, as stream threads may still run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "simt_abi.h"
#include "types.h"

namespace fake {

struct Capture;
struct Context;
struct Node;
struct Stream;

std::mutex& global_lock();

// The live objects of one kind by handle.
template <class T>
class Table {
  public:
    std::shared_ptr<T> find(const void* handle) {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto found = objects_.find(handle);
        return found != objects_.end() ? found->second : nullptr;
    }
    void add(const std::shared_ptr<T>& object) {
        const std::lock_guard<std::mutex> guard(mutex_);
        objects_[object.get()] = object;
    }
    std::shared_ptr<T> take(const void* handle) {
        const std::lock_guard<std::mutex> guard(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end()) {
            return nullptr;
        }
        std::shared_ptr<T> object = std::move(found->second);
        objects_.erase(found);
        return object;
    }
    std::vector<std::shared_ptr<T>> all() {
        const std::lock_guard<std::mutex> guard(mutex_);
        std::vector<std::shared_ptr<T>> list;
        for (const auto& entry : objects_) {
            list.push_back(entry.second);
        }
        return list;
    }

  private:
    std::mutex mutex_;
    std::map<const void*, std::shared_ptr<T>> objects_;
};

// A place in a stream's order of commands.
struct Point {
    std::shared_ptr<Stream> stream;
    uint64_t sequence = 0;
    bool reached() const;
    void wait() const;
};

struct Command {
    std::function<CUresult()> run;
    CUresult ordered = CUDA_SUCCESS;  // what it fails with to order
};

// A stream: a queue and the thread that works on it. `queue`, `submitted` and `completed` belong to `mutex`;
// `capture` and `last_nodes` to the global lock.
struct Stream {
    Context* context = nullptr;
    unsigned id = 0;
    bool blocking = true;
    bool is_null = false;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Command> queue;
    uint64_t submitted = 0;
    uint64_t completed = 0;
    bool closed = false;
    std::shared_ptr<Capture> capture;
    std::vector<std::shared_ptr<Node>> last_nodes;
};

// The mark that cuEventRecord leaves. `recorded` is false until then.
struct Event {
    Context* context = nullptr;
    unsigned id = 0;
    unsigned flags = 0;
    std::mutex mutex;
    bool recorded = false;
    Point point;
    std::shared_ptr<std::atomic<int64_t>> time;  // nanoseconds, -1 until reached
    std::shared_ptr<Capture> capture;
    std::vector<std::shared_ptr<Node>> nodes;
};

struct Module {
    Context* context = nullptr;
    void* library = nullptr;
    int descriptor = -1;
    const fake_cuda::Module* code = nullptr;
    std::mutex running;  // a module's built-in variables and shared memory serve one launch at a time
    struct Range {
        unsigned char* begin;
        size_t size;
    };
    std::vector<Range> shared;             // all shared variables
    std::map<std::string, Range> globals;  // device and constant variables
    std::map<std::string, std::shared_ptr<struct Function>> functions;
    ~Module();
};

struct Function {
    std::weak_ptr<Module> module;
    const fake_cuda::Entry* entry = nullptr;
    size_t static_shared = 0;  // of what the kernel itself declares
    std::atomic<unsigned> dynamic_limit{SHARED_DEFAULT};
    std::atomic<int> carveout{-1};
};

// Part of a graph: work that can be done any number of times.
struct Node {
    NodeKind kind = NodeKind::Empty;
    std::string text;  // for the log
    std::function<CUresult()> run;
    std::vector<std::shared_ptr<Node>> after;
    const void* function = nullptr;
    std::shared_ptr<void> memory;  // what a memory node keeps alive
};

struct Graph {
    std::vector<std::shared_ptr<Node>> nodes;  // each behind those it waits for
};

struct GraphExec {
    std::mutex mutex;  // for `nodes`
    std::mutex launching;
    std::vector<std::shared_ptr<Node>> nodes;
};

struct Pool {
    int device = 0;
    uint64_t release_threshold = 0;
    std::atomic<uint64_t> used{0};
    std::atomic<uint64_t> used_high{0};
    std::atomic<uint64_t> flags[4] = {{0}, {1}, {1}, {1}};  // the reuse policies, by attribute
    std::set<int> access;  // the other devices that may; belongs to the global lock
};

struct Device {
    int index = 0;
    int major = 9;
    int minor = 0;
    size_t memory = 0;
    std::shared_ptr<Pool> default_pool;
    std::shared_ptr<Pool> current_pool;
    std::atomic<size_t> used{0};
    // Of `used`: what graphs that are gone had, kept for others until cuDeviceGraphMemTrim.
    std::atomic<size_t> graph_cached{0};
};

// The primary context of a device, the only kind there is.
struct Context {
    Device* device = nullptr;
    std::atomic<CUresult> error{CUDA_SUCCESS};  // the sticky one
    std::mutex submit;
    unsigned references = 0;  // of the primary context; belongs to the global lock
    std::shared_ptr<Stream> null_stream;
    std::vector<std::weak_ptr<Stream>> streams;  // the blocking ones; belongs to `submit`
    std::set<int> peers;
    // Makes `result` the context's error where it is one and none is there yet; returns what counts.
    CUresult fail(CUresult result, const char* where);
};

Table<Stream>& streams();
Table<Event>& events();
Table<Module>& modules();
Table<Function>& functions();
Table<Graph>& graphs();
Table<GraphExec>& graph_execs();
Table<Pool>& pools();

bool initialised();
const std::vector<std::unique_ptr<Device>>& devices();
Device* device_at(CUdevice index);
// Whether `reader` can be let at memory of `owner` (FAKE_CUDA_PEERS).
bool can_access(int reader, int owner);
Context* current_context();
Context* context_of(CUcontext handle);
void forget_errors();

enum class Needs { Nothing, Init, Context };

// What each function of the interface does first: is the driver initialised, is a failure ordered, is a context
// current, has it failed. `error` is what the call returns at once if it is not CUDA_SUCCESS.
struct Call {
    explicit Call(const char* function, Needs needs = Needs::Context);
    const char* name;
    CUresult error = CUDA_SUCCESS;
    CUresult later = CUDA_SUCCESS;
    Context* context = nullptr;
};

// True on a thread that runs a cuLaunchHostFunc function, where the interface must not be called.
bool& inside_host_function();

}  // namespace fake
