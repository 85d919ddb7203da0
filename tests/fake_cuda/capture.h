// Stream capture: work on a capturing stream becomes nodes of a graph.
//
// A capture is active until cuStreamEndCapture on the stream that began it, or invalidated by a call that is not
// permitted meanwhile. Its streams are the one that began it and those that waited for an event recorded in it. All
// of it belongs to the global lock.
#pragma once

#include <thread>

#include "stream.h"

namespace fake {

struct Capture {
    uint64_t id = 0;
    int mode = CU_CAPTURE_GLOBAL;
    bool invalid = false;
    std::thread::id thread;
    Stream* origin = nullptr;
    std::shared_ptr<Graph> graph;
    std::vector<std::weak_ptr<Stream>> streams;
};

// Adds the work as a node where the stream captures, and says so in `captured`. An error where the stream must not
// take work now.
CUresult capture_work(const std::shared_ptr<Stream>& stream, const Work& work, bool& captured);
// For calls that are not permitted on a capturing stream (900, and the capture is invalid).
CUresult forbid_on_capturing(const std::shared_ptr<Stream>& stream);
// For calls that are not permitted while any capture is on that the thread's mode respects.
CUresult forbid_while_capturing();
// For calls that wait for all of a context.
CUresult forbid_while_context_captures(Context& context);
bool is_capturing(const std::shared_ptr<Stream>& stream);
// A destroyed stream takes its capture along.
void abandon_capture(const std::shared_ptr<Stream>& stream);

// cuEventRecord and cuStreamWaitEvent in a capture; `captured` as above.
CUresult capture_record(const std::shared_ptr<Stream>& stream, Event& event, bool& captured);
CUresult capture_wait(const std::shared_ptr<Stream>& stream, Event& event, bool& captured);
// CUDA_ERROR_CAPTURED_EVENT where the event was last recorded in a capture that goes on, which is then invalid.
CUresult forbid_on_captured(Event& event);

}  // namespace fake
