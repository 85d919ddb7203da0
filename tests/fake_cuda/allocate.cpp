// Allocating and freeing device and pinned memory, in stream order or at once.

#include <algorithm>
#include <cstring>

#include "capture.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace fake {

namespace {

CUdeviceptr handle_of(const Block& block) { return reinterpret_cast<CUdeviceptr>(block.data); }

// An allocation that is part of a graph: one address for the graph's life, live from its node to the freeing node.
CUresult allocate_in_graph(const Call& call, const std::shared_ptr<Stream>& stream, const std::shared_ptr<Block>& block) {
    block->of_graph = true;
    Work work = {NodeKind::MemAlloc, "alloc bytes=" + std::to_string(block->size), [block] { return revive(block); },
                 nullptr, keep_for_graph(block)};
    return enqueue(call, stream, std::move(work));
}

CUresult allocate_async(const Call& call, CUdeviceptr* out, size_t size, const std::shared_ptr<Pool>& pool, CUstream handle) {
    const auto stream = stream_of(call, handle);
    if (stream == nullptr || pool == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (out == nullptr || size == 0 || pool->device != call.context->device->index) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_capturing(stream)) {
        take_cached(*call.context->device, size);
    }
    const std::shared_ptr<Block> block = allocate(*call.context, size, Life::Reserved, pool);
    log("alloc_async bytes=%zu stream=%u address=%p", size, stream->id,
        block != nullptr ? static_cast<void*>(block->data) : nullptr);
    if (block == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = CUDA_SUCCESS;
    if (is_capturing(stream)) {
        result = allocate_in_graph(call, stream, block);
    } else {
        Work work = {NodeKind::MemAlloc, "", [block] { return bring_to_life(block); }, nullptr, nullptr};
        result = enqueue(call, stream, std::move(work));
    }
    *out = result == CUDA_SUCCESS ? handle_of(*block) : 0;
    return result;
}

// The block that begins at `address` and may be freed now, marked as being freed.
std::shared_ptr<Block> take_block(CUdeviceptr address, Place place) {
    const std::shared_ptr<Block> block = block_at(address);
    const bool good = block != nullptr && handle_of(*block) == address && block->place == place && mark_for_free(*block);
    return good ? block : nullptr;
}

CUresult free_at_once(const Call& call, CUdeviceptr address, Place place) {
    if (const CUresult result = forbid_while_capturing()) {
        return result;
    }
    const std::shared_ptr<Block> block = take_block(address, place);
    if (block == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    log("free%s address=%p", place == Place::Pinned ? "_host" : "", static_cast<void*>(block->data));
    const CUresult before = synchronise(*block->context);
    if (!block->of_graph) {
        account_free(*block);
    }
    const CUresult result = retire(block);
    if (result != CUDA_SUCCESS) {
        call.context->fail(result, call.name);
    }
    return before != CUDA_SUCCESS ? before : result;
}

CUresult allocate_host(const Call& call, void** out, size_t size) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = forbid_while_capturing()) {
        return result;
    }
    const std::shared_ptr<Block> block = allocate_pinned(*call.context, size);
    if (block == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    log("alloc_host bytes=%zu address=%p", size, static_cast<void*>(block->data));
    *out = block->data;
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace fake

using fake::Call;

FAKE_API cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr || size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = fake::forbid_while_capturing()) {
        return result;
    }
    const auto block = fake::allocate(*call.context, size, fake::Life::Live, nullptr);
    fake::log("alloc bytes=%zu address=%p", size, block != nullptr ? static_cast<void*>(block->data) : nullptr);
    if (block == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = fake::handle_of(*block);
    return CUDA_SUCCESS;
}

FAKE_API cuMemFree_v2(CUdeviceptr address) {
    Call call(__func__);
    return call.error != CUDA_SUCCESS ? call.error : fake::free_at_once(call, address, fake::Place::Device);
}

FAKE_API cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool handle, CUstream stream) {
    Call call(__func__);
    return call.error != CUDA_SUCCESS ? call.error
                                      : fake::allocate_async(call, out, size, fake::pools().find(handle), stream);
}

FAKE_API cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
    Call call(__func__);
    return call.error != CUDA_SUCCESS
               ? call.error
               : fake::allocate_async(call, out, size, call.context->device->current_pool, stream);
}

FAKE_API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto stream = fake::stream_of(call, handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto found = fake::block_at(address);
    if (found != nullptr && !found->of_graph && fake::is_capturing(stream)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto block = fake::take_block(address, fake::Place::Device);
    if (block == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    fake::log("free_async stream=%u address=%p", stream->id, static_cast<void*>(block->data));
    if (!block->of_graph) {
        fake::account_free(*block);
    }
    return fake::enqueue(call, stream, {NodeKind::MemFree, "free", [block] { return fake::retire(block); }, nullptr, nullptr});
}

FAKE_API cuMemHostAlloc(void** out, size_t size, unsigned flags) {
    Call call(__func__);
    // Portable, mapped, write-combined.
    return call.error == CUDA_SUCCESS && flags > 7 ? CUDA_ERROR_INVALID_VALUE : fake::allocate_host(call, out, size);
}

FAKE_API cuMemAllocHost_v2(void** out, size_t size) {
    Call call(__func__);
    return fake::allocate_host(call, out, size);
}

FAKE_API cuMemFreeHost(void* pointer) {
    Call call(__func__);
    return call.error != CUDA_SUCCESS
               ? call.error
               : fake::free_at_once(call, reinterpret_cast<CUdeviceptr>(pointer), fake::Place::Pinned);
}

FAKE_API cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto block = fake::block_at(reinterpret_cast<uint64_t>(pointer));
    if (out == nullptr || flags != 0 || block == nullptr || block->place != fake::Place::Pinned ||
        block->life != fake::Life::Live) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
}

FAKE_API cuMemGetInfo_v2(size_t* free, size_t* total) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (free == nullptr || total == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *total = fake::device_memory();
    *free = *total - std::min(*total, call.context->device->used.load());
    return CUDA_SUCCESS;
}

namespace {

template <class T>
CUresult give(void* out, T value) {
    std::memcpy(out, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult pointer_attribute(void* out, int attribute, const fake::Block& block) {
    const bool pinned = block.place == fake::Place::Pinned;
    switch (attribute) {
        case 1:
            return give(out, block.context);
        case 2:
            return give(out, static_cast<unsigned>(pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
        case 7:
            return give(out, reinterpret_cast<unsigned long long>(&block));
        case 8:
            return give(out, 0u);
        case 9:
            return give(out, block.context->device->index);
        case 11:
            return give(out, block.data);
        case 12:
            return give(out, block.size);
        case 13:
            return give(out, 1u);
        case 17:
            return give(out, block.pool.get());
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // namespace

FAKE_API cuPointerGetAttribute(void* out, int attribute, CUdeviceptr pointer) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto block = fake::block_at(pointer);
    if (out == nullptr || block == nullptr || block->life == fake::Life::Freed || block->free_submitted) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == 3 || (attribute == 4 && block->place == fake::Place::Pinned)) {
        return give(out, pointer);
    }
    return attribute == 4 ? CUDA_ERROR_INVALID_VALUE : pointer_attribute(out, attribute, *block);
}
