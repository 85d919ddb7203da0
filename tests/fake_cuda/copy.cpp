// Copies and fills.
//
// Pinned memory is read and written when the stream gets there. Pageable memory behaves as on the real driver: an
// upload takes its bytes during the call, a download is complete when the call returns.

#include <cstring>

#include "capture.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace fake {

namespace {

enum class Side { Host, Device, Either };

struct Copy {
    uint64_t to;
    uint64_t from;
    size_t size;
    Side to_side;
    Side from_side;
    const char* kind;
};

enum class Memory { Device, Pinned, Pageable };

Memory memory_of(uint64_t address) {
    const std::shared_ptr<Block> block = block_at(address);
    if (block == nullptr) {
        return Memory::Pageable;
    }
    return block->place == Place::Pinned ? Memory::Pinned : Memory::Device;
}

// Whether the call may name these bytes as this side of a copy.
bool good_side(uint64_t address, size_t size, Side side) {
    const Memory memory = memory_of(address);
    if (memory == Memory::Pageable) {
        return side != Side::Device && address != 0;
    }
    return (side != Side::Host || memory != Memory::Device) && valid_to_submit(address, size);
}

CUresult run_copy(const Copy& copy) {
    const bool tracked_to = memory_of(copy.to) != Memory::Pageable || copy.to_side == Side::Device;
    const bool tracked_from = memory_of(copy.from) != Memory::Pageable || copy.from_side == Side::Device;
    if ((tracked_to && !valid_to_touch(copy.to, copy.size, copy.kind)) ||
        (tracked_from && !valid_to_touch(copy.from, copy.size, copy.kind))) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (copy.to != copy.from && copy.to < copy.from + copy.size && copy.from < copy.to + copy.size) {
        report("%s of %zu bytes between places that overlap", copy.kind, copy.size);
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    std::memmove(reinterpret_cast<void*>(copy.to), reinterpret_cast<const void*>(copy.from), copy.size);
    return CUDA_SUCCESS;
}

// An upload whose bytes were taken during the call.
CUresult run_staged(Copy copy, const std::vector<unsigned char>& bytes) {
    copy.from = reinterpret_cast<uint64_t>(bytes.data());
    copy.from_side = Side::Host;
    return run_copy(copy);
}

Work work_of(const Copy& copy, bool stage) {
    Work work = {NodeKind::Memcpy, std::string(copy.kind) + " bytes=" + std::to_string(copy.size),
                 [copy] { return run_copy(copy); }, nullptr, nullptr};
    if (stage) {
        const auto* first = reinterpret_cast<const unsigned char*>(copy.from);
        auto bytes = std::make_shared<std::vector<unsigned char>>(first, first + copy.size);
        work.run = [copy, bytes] { return run_staged(copy, *bytes); };
    }
    return work;
}

CUresult copy_async(const Call& call, const Copy& copy, CUstream handle) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = stream_of(call, handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (copy.size == 0) {
        return CUDA_SUCCESS;
    }
    if (!good_side(copy.to, copy.size, copy.to_side) || !good_side(copy.from, copy.size, copy.from_side)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool capturing = is_capturing(stream);
    log("copy kind=%s bytes=%zu stream=%u capture=%d", copy.kind, copy.size, stream->id, capturing);
    const bool stage = !capturing && memory_of(copy.from) == Memory::Pageable;
    Point point;
    const CUresult result = enqueue(call, stream, work_of(copy, stage), &point);
    if (result == CUDA_SUCCESS && point.stream != nullptr && memory_of(copy.to) == Memory::Pageable) {
        point.wait();
    }
    return result;
}

CUresult copy_now(const Call& call, const Copy& copy) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (const CUresult result = forbid_while_capturing()) {
        return result;
    }
    if (copy.size == 0) {
        return CUDA_SUCCESS;
    }
    if (!good_side(copy.to, copy.size, copy.to_side) || !good_side(copy.from, copy.size, copy.from_side)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    log("copy kind=%s bytes=%zu stream=0 capture=0 synchronous=1", copy.kind, copy.size);
    Point point;
    const CUresult result = enqueue(call, call.context->null_stream, work_of(copy, false), &point);
    return result != CUDA_SUCCESS ? result : wait_for(*call.context, point);
}

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// Whether the device that copies reaches both ends, and need not go by the host.
bool is_direct(const Context& context, uint64_t to, uint64_t from) {
    const auto one = block_at(to);
    const auto other = block_at(from);
    return one != nullptr && other != nullptr && reaches(context, *one) && reaches(context, *other);
}

// Writes `count` elements of `width` bytes.
CUresult run_fill(uint64_t to, uint32_t value, size_t count, unsigned width) {
    if (!valid_to_touch(to, count * width, "memset")) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    auto* out = reinterpret_cast<unsigned char*>(to);
    for (size_t i = 0; i < count; ++i) {
        std::memcpy(out + i * width, &value, width);
    }
    return CUDA_SUCCESS;
}

CUresult fill(const Call& call, uint64_t to, uint32_t value, size_t count, unsigned width, CUstream handle, bool wait) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = stream_of(call, handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (wait) {
        if (const CUresult result = forbid_while_capturing()) {
            return result;
        }
    }
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    if (to % width != 0 || count > SIZE_MAX / width || !valid_to_submit(to, count * width)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    log("memset width=%u count=%zu stream=%u capture=%d", width * 8, count, stream->id, is_capturing(stream));
    Work work = {NodeKind::Memset, "memset bytes=" + std::to_string(count * width),
                 [=] { return run_fill(to, value, count, width); }, nullptr, nullptr};
    Point point;
    const CUresult result = enqueue(call, stream, std::move(work), &point);
    return result != CUDA_SUCCESS || !wait ? result : wait_for(*call.context, point);
}

}  // namespace

}  // namespace fake

using fake::address;
using fake::Call;
using fake::Side;

FAKE_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
    return fake::copy_now(Call(__func__), {to, address(from), size, Side::Device, Side::Host, "htod"});
}
FAKE_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
    return fake::copy_now(Call(__func__), {address(to), from, size, Side::Host, Side::Device, "dtoh"});
}
FAKE_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return fake::copy_now(Call(__func__), {to, from, size, Side::Device, Side::Device, "dtod"});
}
FAKE_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return fake::copy_now(Call(__func__), {to, from, size, Side::Either, Side::Either, "copy"});
}
FAKE_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return fake::copy_async(Call(__func__), {to, address(from), size, Side::Device, Side::Host, "htod"}, stream);
}
FAKE_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return fake::copy_async(Call(__func__), {address(to), from, size, Side::Host, Side::Device, "dtoh"}, stream);
}
FAKE_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return fake::copy_async(Call(__func__), {to, from, size, Side::Device, Side::Device, "dtod"}, stream);
}
FAKE_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return fake::copy_async(Call(__func__), {to, from, size, Side::Either, Side::Either, "copy"}, stream);
}
FAKE_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
                           CUstream stream) {
    Call call(__func__);
    if (call.error == CUDA_SUCCESS && (fake::context_of(to_context) == nullptr || fake::context_of(from_context) == nullptr)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (call.error == CUDA_SUCCESS && size > 0) {
        fake::log("peer_copy bytes=%zu direct=%d", size, fake::is_direct(*call.context, to, from));
    }
    return fake::copy_async(call, {to, from, size, Side::Device, Side::Device, "peer"}, stream);
}

FAKE_API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    return fake::fill(Call(__func__), to, value, count, 1, nullptr, true);
}
FAKE_API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    return fake::fill(Call(__func__), to, value, count, 2, nullptr, true);
}
FAKE_API cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    return fake::fill(Call(__func__), to, value, count, 4, nullptr, true);
}
FAKE_API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return fake::fill(Call(__func__), to, value, count, 1, stream, false);
}
FAKE_API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    return fake::fill(Call(__func__), to, value, count, 2, stream, false);
}
FAKE_API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return fake::fill(Call(__func__), to, value, count, 4, stream, false);
}
