// Submitting work to streams, and waiting for it.
#pragma once

#include <memory>
#include <string>

#include "state.h"

namespace fake {

// The stream behind a handle: 0 and the two special handles are the context's null stream. Null if there is none.
std::shared_ptr<Stream> stream_of(const Call& call, CUstream handle);
std::shared_ptr<Stream> make_stream(Context& context, bool blocking, bool is_null);
// Lets the stream's thread end once its queue is empty.
void close_stream(Stream& stream);

// Puts a command behind all that the stream has, with the legacy order towards the null stream.
Point submit(const std::shared_ptr<Stream>& stream, Command command);

// Work that becomes a graph node where the stream captures, and a command where not.
struct Work {
    NodeKind kind;
    std::string text;
    std::function<CUresult()> run;
    const void* function = nullptr;
    std::shared_ptr<void> memory;
};
// `point` gets the command's place, with no stream in it where the work was captured.
CUresult enqueue(const Call& call, const std::shared_ptr<Stream>& stream, Work work, Point* point = nullptr);

// Waits and gives the context's error, after a look at all guard zones.
CUresult wait_for(Context& context, const Point& point);
CUresult synchronise(Context& context);

}  // namespace fake
