// Events: a mark in a stream's order.

#include <chrono>

#include "capture.h"
#include "settings.h"
#include "stream.h"

namespace fake {

namespace {

int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

unsigned next_id() {
    static std::atomic<unsigned> next{1};
    return next++;
}

CUresult record(const Call& call, Event& event, const std::shared_ptr<Stream>& stream) {
    auto time = std::make_shared<std::atomic<int64_t>>(-1);
    const Point point = submit(stream, {[time] {
                                            *time = now();
                                            return CUDA_SUCCESS;
                                        },
                                        call.later});
    const std::lock_guard<std::mutex> guard(event.mutex);
    event.recorded = true;
    event.point = point;
    event.time = time;
    return CUDA_SUCCESS;
}

Point point_of(Event& event) {
    const std::lock_guard<std::mutex> guard(event.mutex);
    return event.recorded ? event.point : Point();
}

}  // namespace

}  // namespace fake

using fake::Call;

FAKE_API cuEventCreate(CUevent* out, unsigned flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (out == nullptr || flags > 7 || (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto event = std::make_shared<fake::Event>();
    event->context = call.context;
    event->id = fake::next_id();
    event->flags = flags;
    fake::events().add(event);
    *out = reinterpret_cast<CUevent>(event.get());
    return CUDA_SUCCESS;
}

FAKE_API cuEventDestroy_v2(CUevent handle) {
    Call call(__func__);
    const auto event = fake::events().take(handle);
    return call.error != CUDA_SUCCESS ? call.error : event == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

FAKE_API cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto event = fake::events().find(handle);
    const auto stream = fake::stream_of(call, stream_handle);
    if (event == nullptr || stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // The real driver does not let an event of one context be recorded in a stream of another.
    if (event->context != stream->context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake::log("event_record event=%u stream=%u", event->id, stream->id);
    bool captured = false;
    if (const CUresult result = fake::capture_record(stream, *event, captured)) {
        return result;
    }
    return captured ? CUDA_SUCCESS : fake::record(call, *event, stream);
}

FAKE_API cuEventRecord(CUevent event, CUstream stream) {
    Call call(__func__);
    return call.error != CUDA_SUCCESS ? call.error : cuEventRecordWithFlags(event, stream, 0);
}

FAKE_API cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto event = fake::events().find(handle);
    const auto stream = fake::stream_of(call, stream_handle);
    if (event == nullptr || stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake::log("event_wait event=%u stream=%u", event->id, stream->id);
    bool captured = false;
    if (const CUresult result = fake::capture_wait(stream, *event, captured)) {
        return result;
    }
    const fake::Point point = fake::point_of(*event);
    if (!captured && point.stream != nullptr) {
        fake::submit(stream, {[point] {
                                  point.wait();
                                  return CUDA_SUCCESS;
                              },
                              call.later});
    }
    return CUDA_SUCCESS;
}

FAKE_API cuEventQuery(CUevent handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto event = fake::events().find(handle);
    if (event == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (const CUresult result = fake::forbid_on_captured(*event)) {
        return result;
    }
    return fake::point_of(*event).reached() ? event->context->error.load() : CUDA_ERROR_NOT_READY;
}

FAKE_API cuEventSynchronize(CUevent handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto event = fake::events().find(handle);
    if (event == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (const CUresult result = fake::forbid_on_captured(*event)) {
        return result;
    }
    fake::log("event_synchronize event=%u", event->id);
    return fake::wait_for(*event->context, fake::point_of(*event));
}

FAKE_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto first = fake::events().find(start);
    const auto last = fake::events().find(end);
    if (milliseconds == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Of two devices there is no common clock.
    if (first != nullptr && last != nullptr && first->context != last->context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    int64_t times[2];
    int64_t* time = times;
    for (const auto& event : {first, last}) {
        if (event == nullptr || (event->flags & CU_EVENT_DISABLE_TIMING) != 0) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        const std::lock_guard<std::mutex> guard(event->mutex);
        if (!event->recorded) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        *time = event->time->load();
        if (*time++ < 0) {
            return CUDA_ERROR_NOT_READY;
        }
    }
    *milliseconds = static_cast<float>(static_cast<double>(times[1] - times[0]) * 1e-6);
    return CUDA_SUCCESS;
}

FAKE_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
