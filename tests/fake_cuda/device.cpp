// The driver's start, devices and primary contexts.
//
// Every fake device is the same small GPU but for its compute capability (FAKE_CUDA_CC) and memory.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "memory.h"
#include "settings.h"
#include "state.h"
#include "stream.h"

namespace fake {

namespace {

struct Driver {
    std::atomic<bool> initialised{false};
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<Context*> primary;      // by device; null until retained; belongs to the global lock
    std::vector<Context*> destroyed;    // their handles stay known, so that late users get an error and no crash
};

Driver& driver() {
    static Driver& driver = *new Driver;
    return driver;
}

std::vector<Context*>& context_stack() {
    static thread_local std::vector<Context*> stack;
    return stack;
}

// The capability of device `index` from a list such as "9.0,7.5", whose last entry serves all further devices.
void read_capability(const std::string& list, int index, Device& device) {
    size_t at = 0;
    for (int i = 0; i < index; ++i) {
        const size_t comma = list.find(',', at);
        if (comma == std::string::npos) {
            break;
        }
        at = comma + 1;
    }
    if (std::sscanf(list.c_str() + at, "%d.%d", &device.major, &device.minor) != 2) {
        report("FAKE_CUDA_CC is '%s', expected a list such as 9.0,7.5", list.c_str());
    }
}

void start(int count) {
    Driver& d = driver();
    const std::string capabilities = setting("CC", "9.0");
    for (int i = 0; i < count; ++i) {
        auto device = std::make_unique<Device>();
        device->index = i;
        read_capability(capabilities, i, *device);
        device->default_pool = std::make_shared<Pool>();
        device->default_pool->device = i;
        device->current_pool = device->default_pool;
        pools().add(device->default_pool);
        d.devices.push_back(std::move(device));
    }
    d.primary.resize(static_cast<size_t>(count));
    d.initialised = true;
}

}  // namespace

std::mutex& global_lock() {
    static std::mutex& mutex = *new std::mutex;
    return mutex;
}

bool initialised() { return driver().initialised; }
const std::vector<std::unique_ptr<Device>>& devices() { return driver().devices; }

Device* device_at(CUdevice index) {
    const auto& list = driver().devices;
    return index >= 0 && static_cast<size_t>(index) < list.size() ? list[static_cast<size_t>(index)].get() : nullptr;
}

bool can_access(int reader, int owner) { return reader != owner && setting_number("PEERS", 1) != 0; }

Context* current_context() { return context_stack().empty() ? nullptr : context_stack().back(); }

Context* context_of(CUcontext handle) {
    const std::lock_guard<std::mutex> guard(global_lock());
    for (const auto* list : {&driver().primary, &driver().destroyed}) {
        for (Context* context : *list) {
            if (context != nullptr && reinterpret_cast<CUcontext>(context) == handle) {
                return context;
            }
        }
    }
    return nullptr;
}

void forget_errors() {
    const std::lock_guard<std::mutex> guard(global_lock());
    for (Context* context : driver().primary) {
        if (context != nullptr) {
            context->error = CUDA_SUCCESS;
        }
    }
}

CUresult Context::fail(CUresult result, const char* where) {
    CUresult none = CUDA_SUCCESS;
    if (error.compare_exchange_strong(none, result)) {
        log("context_failed device=%d result=%d in=%s", device->index, result, where);
    }
    return error.load();
}

bool& inside_host_function() {
    static thread_local bool inside = false;
    return inside;
}

Call::Call(const char* function, Needs needs) : name(function) {
    note_call(function);
    if (inside_host_function()) {
        report("%s called from a function given to cuLaunchHostFunc", function);
        error = CUDA_ERROR_NOT_PERMITTED;
        return;
    }
    if (needs != Needs::Nothing && !initialised()) {
        error = CUDA_ERROR_NOT_INITIALIZED;
        return;
    }
    if (needs == Needs::Context) {
        context = current_context();
        if (context == nullptr) {
            error = CUDA_ERROR_INVALID_CONTEXT;
            return;
        }
    }
    error = ordered_failure(function);
    later = ordered_late_failure(function);
    if (context == nullptr) {
        return;
    }
    if (is_sticky(error)) {
        context->fail(error, function);
    }
    if (context->error.load() != CUDA_SUCCESS) {
        error = context->error.load();
    }
}

namespace {

// Ends a primary context: its streams, events, modules and memory go.
void destroy_context(Context& context) {
    synchronise(context);
    for (const auto& stream : streams().all()) {
        if (stream->context == &context) {
            streams().take(stream.get());
            close_stream(*stream);
        }
    }
    for (const auto& event : events().all()) {
        if (event->context == &context) {
            events().take(event.get());
        }
    }
    for (const auto& module : modules().all()) {
        if (module->context == &context) {
            for (const auto& function : module->functions) {
                functions().take(function.second.get());
            }
            modules().take(module.get());
        }
    }
    if (context.null_stream != nullptr) {
        close_stream(*context.null_stream);
    }
    free_all(context);
    trim_graphs(*context.device);
    context.error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult release(CUdevice index, bool reset) {
    Context* last = nullptr;
    {
        const std::lock_guard<std::mutex> guard(global_lock());
        Context*& context = driver().primary[static_cast<size_t>(index)];
        if (context == nullptr) {
            return reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
        }
        if (!reset && --context->references > 0) {
            return CUDA_SUCCESS;
        }
        last = context;
        driver().destroyed.push_back(context);
        context = nullptr;
    }
    log("context_destroy device=%d", index);
    destroy_context(*last);
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace fake

using fake::Call;
using fake::Needs;

FAKE_API cuInit(unsigned flags) {
    Call call(__func__, Needs::Nothing);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard<std::mutex> guard(fake::global_lock());
    if (fake::initialised()) {
        return CUDA_SUCCESS;
    }
    const long long count = fake::setting_number("DEVICES", 1);
    if (count <= 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    fake::start(static_cast<int>(std::min(count, 64ll)));
    return CUDA_SUCCESS;
}

FAKE_API cuDriverGetVersion(int* version) {
    Call call(__func__, Needs::Nothing);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (version == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = static_cast<int>(fake::setting_number("DRIVER", 13000));
    return CUDA_SUCCESS;
}

FAKE_API cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice index) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    fake::Device* device = fake::device_at(index);
    if (out == nullptr || device == nullptr) {
        return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    const std::lock_guard<std::mutex> guard(fake::global_lock());
    fake::Context*& context = fake::driver().primary[static_cast<size_t>(index)];
    if (context == nullptr) {
        context = new fake::Context;
        context->device = device;
        context->null_stream = fake::make_stream(*context, true, true);
        fake::log("context_create device=%d", index);
    }
    ++context->references;
    *out = reinterpret_cast<CUcontext>(context);
    return CUDA_SUCCESS;
}

FAKE_API cuDevicePrimaryCtxRelease_v2(CUdevice index) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    return fake::device_at(index) == nullptr ? CUDA_ERROR_INVALID_DEVICE : fake::release(index, false);
}

FAKE_API cuDevicePrimaryCtxReset_v2(CUdevice index) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    return fake::device_at(index) == nullptr ? CUDA_ERROR_INVALID_DEVICE : fake::release(index, true);
}

FAKE_API cuDevicePrimaryCtxGetState(CUdevice index, unsigned* flags, int* active) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (fake::device_at(index) == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (flags == nullptr || active == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard<std::mutex> guard(fake::global_lock());
    *flags = 0;
    *active = fake::driver().primary[static_cast<size_t>(index)] != nullptr;
    return CUDA_SUCCESS;
}

namespace {

// Makes `handle` the current context; null means none.
CUresult make_current(CUcontext handle, bool push) {
    auto& stack = fake::context_stack();
    if (handle == nullptr) {
        if (push) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!stack.empty()) {
            stack.pop_back();
        }
        return CUDA_SUCCESS;
    }
    fake::Context* context = fake::context_of(handle);
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (push || stack.empty()) {
        stack.push_back(context);
    } else {
        stack.back() = context;
    }
    return CUDA_SUCCESS;
}

}  // namespace

FAKE_API cuCtxSetCurrent(CUcontext handle) {
    Call call(__func__, Needs::Init);
    return call.error != CUDA_SUCCESS ? call.error : make_current(handle, false);
}

FAKE_API cuCtxPushCurrent_v2(CUcontext handle) {
    Call call(__func__, Needs::Init);
    return call.error != CUDA_SUCCESS ? call.error : make_current(handle, true);
}

FAKE_API cuCtxPopCurrent_v2(CUcontext* out) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    auto& stack = fake::context_stack();
    if (stack.empty()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (out != nullptr) {
        *out = reinterpret_cast<CUcontext>(stack.back());
    }
    stack.pop_back();
    return CUDA_SUCCESS;
}

FAKE_API cuCtxGetCurrent(CUcontext* out) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = reinterpret_cast<CUcontext>(fake::current_context());
    return CUDA_SUCCESS;
}

FAKE_API cuCtxGetDevice(CUdevice* out) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = call.context->device->index;
    return CUDA_SUCCESS;
}

FAKE_API cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (version == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (handle != nullptr ? fake::context_of(handle) == nullptr : fake::current_context() == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *version = 3020;
    return CUDA_SUCCESS;
}

FAKE_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    fake::Context* other = fake::context_of(peer);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (other == nullptr || other == call.context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!fake::can_access(call.context->device->index, other->device->index)) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    const std::lock_guard<std::mutex> guard(fake::global_lock());
    const bool added = call.context->peers.insert(other->device->index).second;
    return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
