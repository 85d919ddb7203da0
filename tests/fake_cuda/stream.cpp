// Streams: one thread each, which takes commands off a queue. See stream.h.
//
// A command of a failed context is passed over, its place in the order is still reached, so that nobody waits for
// ever. The null stream waits for all blocking streams and they for it, as the legacy default stream does.

#include "stream.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "capture.h"
#include "meet.h"
#include "memory.h"
#include "settings.h"
#include "fault.h"

namespace fake {

bool Point::reached() const {
    if (stream == nullptr) {
        return true;
    }
    const std::lock_guard<std::mutex> guard(stream->mutex);
    return stream->completed >= sequence;
}

void Point::wait() const {
    if (stream != nullptr) {
        std::unique_lock<std::mutex> guard(stream->mutex);
        stream->changed.wait(guard, [this] { return stream->completed >= sequence; });
    }
}

namespace {

void execute(Stream& stream, const Command& command) {
    Context& context = *stream.context;
    if (const uint64_t slow = slow_nanoseconds(); slow > 0) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(slow));
    }
    if (context.error.load() != CUDA_SUCCESS) {
        return;
    }
    const CUresult result = command.ordered != CUDA_SUCCESS ? command.ordered : command.run();
    if (result != CUDA_SUCCESS) {
        context.fail(result, "a command of a stream");
    }
}

void work(const std::shared_ptr<Stream>& stream) {
    prepare_kernel_thread();
    std::unique_lock<std::mutex> guard(stream->mutex);
    for (;;) {
        stream->changed.wait(guard, [&] { return !stream->queue.empty() || stream->closed; });
        if (stream->queue.empty()) {
            break;
        }
        Command command = std::move(stream->queue.front());
        stream->queue.pop_front();
        guard.unlock();
        execute(*stream, command);
        command = Command();
        guard.lock();
        ++stream->completed;
        stream->changed.notify_all();
    }
    guard.unlock();
    release_kernel_thread();
}

Point push(const std::shared_ptr<Stream>& stream, Command command) {
    const std::lock_guard<std::mutex> guard(stream->mutex);
    stream->queue.push_back(std::move(command));
    ++stream->submitted;
    stream->changed.notify_all();
    return {stream, stream->submitted};
}

// Where the stream stands now: behind all that it was given.
Point tail(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard<std::mutex> guard(stream->mutex);
    return {stream, stream->submitted};
}

void push_wait(const std::shared_ptr<Stream>& stream, const Point& point) {
    if (!point.reached()) {
        push(stream, {[point] {
                          point.wait();
                          return CUDA_SUCCESS;
                      },
                      CUDA_SUCCESS});
    }
}

std::vector<std::shared_ptr<Stream>> blocking_streams(Context& context) {
    std::vector<std::shared_ptr<Stream>> list;
    auto& streams = context.streams;
    for (const auto& weak : streams) {
        if (auto stream = weak.lock()) {
            list.push_back(std::move(stream));
        }
    }
    streams.erase(std::remove_if(streams.begin(), streams.end(), [](const auto& s) { return s.expired(); }), streams.end());
    return list;
}

unsigned next_id() {
    static std::atomic<unsigned> next{1};
    return next++;
}

}  // namespace

std::shared_ptr<Stream> make_stream(Context& context, bool blocking, bool is_null) {
    auto stream = std::make_shared<Stream>();
    stream->context = &context;
    stream->id = is_null ? 0 : next_id();
    stream->blocking = blocking;
    stream->is_null = is_null;
    if (blocking && !is_null) {
        const std::lock_guard<std::mutex> guard(context.submit);
        context.streams.push_back(stream);
    }
    std::thread([stream] { work(stream); }).detach();
    return stream;
}

void close_stream(Stream& stream) {
    const std::lock_guard<std::mutex> guard(stream.mutex);
    stream.closed = true;
    stream.changed.notify_all();
}

std::shared_ptr<Stream> stream_of(const Call& call, CUstream handle) {
    if (reinterpret_cast<uintptr_t>(handle) <= 2) {
        return call.context->null_stream;
    }
    return streams().find(handle);
}

Point submit(const std::shared_ptr<Stream>& stream, Command command) {
    Context& context = *stream->context;
    const std::lock_guard<std::mutex> guard(context.submit);
    if (stream->is_null) {
        for (const auto& other : blocking_streams(context)) {
            push_wait(stream, tail(other));
        }
    } else if (stream->blocking) {
        push_wait(stream, tail(context.null_stream));
    }
    return push(stream, std::move(command));
}

CUresult enqueue(const Call& call, const std::shared_ptr<Stream>& stream, Work work, Point* point) {
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    bool captured = false;
    const CUresult result = capture_work(stream, work, captured);
    if (result != CUDA_SUCCESS || captured) {
        return result;
    }
    const Point place = submit(stream, {meeting(work.text, std::move(work.run)), call.later});
    if (point != nullptr) {
        *point = place;
    }
    return CUDA_SUCCESS;
}

CUresult wait_for(Context& context, const Point& point) {
    point.wait();
    check_guards(context);
    return context.error.load();
}

CUresult synchronise(Context& context) {
    for (const auto& stream : streams().all()) {
        if (stream->context == &context) {
            tail(stream).wait();
        }
    }
    tail(context.null_stream).wait();
    check_guards(context);
    return context.error.load();
}

}  // namespace fake

using fake::Call;

FAKE_API cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto stream = fake::make_stream(*call.context, flags == 0, false);
    fake::streams().add(stream);
    *out = reinterpret_cast<CUstream>(stream.get());
    fake::log("stream_create stream=%u flags=%u", stream->id, flags);
    return CUDA_SUCCESS;
}

FAKE_API cuStreamCreate(CUstream* out, unsigned flags) { return cuStreamCreateWithPriority(out, flags, 0); }

FAKE_API cuStreamDestroy_v2(CUstream handle) {
    Call call(__func__);
    const auto stream = fake::streams().take(handle);
    if (stream == nullptr) {
        return call.error != CUDA_SUCCESS ? call.error : CUDA_ERROR_INVALID_HANDLE;
    }
    fake::abandon_capture(stream);
    fake::close_stream(*stream);
    fake::log("stream_destroy stream=%u", stream->id);
    return call.error;
}

FAKE_API cuStreamSynchronize(CUstream handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (const CUresult result = fake::forbid_on_capturing(stream)) {
        return result;
    }
    fake::log("stream_synchronize stream=%u", stream->id);
    if (stream->is_null) {
        const fake::Point all = fake::submit(stream, {[] { return CUDA_SUCCESS; }, call.later});
        return fake::wait_for(*call.context, all);
    }
    return fake::wait_for(*stream->context, fake::tail(stream));
}

FAKE_API cuStreamQuery(CUstream handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (const CUresult result = fake::forbid_on_capturing(stream)) {
        return result;
    }
    return fake::tail(stream).reached() ? stream->context->error.load() : CUDA_ERROR_NOT_READY;
}

FAKE_API cuStreamGetCtx(CUstream handle, CUcontext* context) {
    Call call(__func__);
    const auto stream = call.error == CUDA_SUCCESS ? fake::stream_of(call, handle) : nullptr;
    if (call.error != CUDA_SUCCESS || stream == nullptr || context == nullptr) {
        return call.error != CUDA_SUCCESS ? call.error : CUDA_ERROR_INVALID_HANDLE;
    }
    *context = reinterpret_cast<CUcontext>(stream->context);
    return CUDA_SUCCESS;
}

FAKE_API cuCtxSynchronize() {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (const CUresult result = fake::forbid_while_context_captures(*call.context)) {
        return result;
    }
    fake::log("context_synchronize");
    return fake::synchronise(*call.context);
}

FAKE_API cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto run = [function, data] {
        fake::inside_host_function() = true;
        function(data);
        fake::inside_host_function() = false;
        return CUDA_SUCCESS;
    };
    fake::log("host_function stream=%u", stream != nullptr ? stream->id : 0);
    return fake::enqueue(call, stream, {NodeKind::Host, "host_function", run, nullptr, nullptr});
}

FAKE_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (least != nullptr) {
        *least = 0;
    }
    if (greatest != nullptr) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}
