// Memory pools: accounts only, as every block has its own bytes.

#include <cstring>

#include "memory.h"
#include "settings.h"
#include "state.h"

namespace {

enum Attribute {
    REUSE_FIRST = 1,
    REUSE_LAST = 3,
    RELEASE_THRESHOLD = 4,
    RESERVED_CURRENT = 5,
    RESERVED_HIGH = 6,
    USED_CURRENT = 7,
    USED_HIGH = 8,
};

CUmemoryPool handle_of(const std::shared_ptr<fake::Pool>& pool) { return reinterpret_cast<CUmemoryPool>(pool.get()); }

constexpr int PINNED = 1;
constexpr int ON_DEVICE = 1;

}  // namespace

using fake::Call;
using fake::Needs;

FAKE_API cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr || properties == nullptr || properties->allocType != PINNED ||
        properties->location.type != ON_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake::device_at(properties->location.id) == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (properties->handleTypes != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    auto pool = std::make_shared<fake::Pool>();
    pool->device = properties->location.id;
    fake::pools().add(pool);
    fake::log("pool_create device=%d", pool->device);
    *out = handle_of(pool);
    return CUDA_SUCCESS;
}

FAKE_API cuMemPoolDestroy(CUmemoryPool handle) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto pool = fake::pools().find(handle);
    if (pool == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    fake::Device* device = fake::device_at(pool->device);
    if (pool == device->default_pool) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pool == device->current_pool) {
        device->current_pool = device->default_pool;
    }
    fake::pools().take(handle);
    fake::log("pool_destroy device=%d", pool->device);
    return CUDA_SUCCESS;
}

FAKE_API cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void* value) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto pool = fake::pools().find(handle);
    if (pool == nullptr || value == nullptr) {
        return pool == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST) {
        int flag = 0;
        std::memcpy(&flag, value, sizeof flag);
        pool->flags[attribute] = flag != 0;
        return CUDA_SUCCESS;
    }
    uint64_t number = 0;
    std::memcpy(&number, value, sizeof number);
    if (attribute == RELEASE_THRESHOLD) {
        pool->release_threshold = number;
        return CUDA_SUCCESS;
    }
    if ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && number == 0) {
        pool->used_high = pool->used.load();
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

FAKE_API cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void* value) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto pool = fake::pools().find(handle);
    if (pool == nullptr || value == nullptr) {
        return pool == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST) {
        const int flag = static_cast<int>(pool->flags[attribute].load());
        std::memcpy(value, &flag, sizeof flag);
        return CUDA_SUCCESS;
    }
    uint64_t number = 0;
    switch (attribute) {
        case RELEASE_THRESHOLD:
            number = pool->release_threshold;
            break;
        case RESERVED_CURRENT:
        case USED_CURRENT:
            number = pool->used.load();
            break;
        case RESERVED_HIGH:
        case USED_HIGH:
            number = pool->used_high.load();
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    std::memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
}

FAKE_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto pool = fake::pools().find(handle);
    if (pool == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (map == nullptr && count > 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard<std::mutex> guard(fake::global_lock());
    for (size_t i = 0; i < count; ++i) {
        const CUmemAccessDesc& entry = map[i];
        if (entry.location.type != ON_DEVICE || (entry.flags != 0 && entry.flags != 1 && entry.flags != 3)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        const bool own = entry.location.id == pool->device;
        if (fake::device_at(entry.location.id) == nullptr || (!own && !fake::can_access(entry.location.id, pool->device))) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        // The device on which the memory lies has access for good.
        if (own && entry.flags != 3) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (!own && entry.flags != 0) {
            pool->access.insert(entry.location.id);
        } else if (!own) {
            pool->access.erase(entry.location.id);
        }
        fake::log("pool_access device=%d reader=%d flags=%d", pool->device, entry.location.id, entry.flags);
    }
    return CUDA_SUCCESS;
}

FAKE_API cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    fake::log("pool_trim");
    return fake::pools().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

FAKE_API cuDeviceGraphMemTrim(CUdevice index) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    fake::Device* device = fake::device_at(index);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    fake::log("graph_trim device=%d", index);
    fake::trim_graphs(*device);
    return CUDA_SUCCESS;
}

namespace {

CUresult give_pool(const Call& call, CUmemoryPool* out, CUdevice index, bool standard) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    fake::Device* device = fake::device_at(index);
    if (device == nullptr || out == nullptr) {
        return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    *out = handle_of(standard ? device->default_pool : device->current_pool);
    return CUDA_SUCCESS;
}

}  // namespace

FAKE_API cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice index) {
    Call call(__func__, Needs::Init);
    return give_pool(call, out, index, true);
}

FAKE_API cuDeviceGetMemPool(CUmemoryPool* out, CUdevice index) {
    Call call(__func__, Needs::Init);
    return give_pool(call, out, index, false);
}

FAKE_API cuDeviceSetMemPool(CUdevice index, CUmemoryPool handle) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    fake::Device* device = fake::device_at(index);
    const auto pool = fake::pools().find(handle);
    if (device == nullptr || pool == nullptr || pool->device != index) {
        return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    }
    device->current_pool = pool;
    return CUDA_SUCCESS;
}
