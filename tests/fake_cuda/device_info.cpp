// What a device says of itself.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "memory.h"
#include "settings.h"
#include "state.h"

namespace {

struct Attribute {
    int id;
    int value;
};

// Values of a small GPU; those not listed here or below are 0, as for a feature that is missing.
constexpr Attribute ATTRIBUTES[] = {
    {1, MAX_THREADS},            // threads in a block
    {2, MAX_THREADS},            // block x
    {3, MAX_THREADS},            // block y
    {4, MAX_BLOCK_Z},            // block z
    {5, MAX_GRID_X},             // grid x
    {6, MAX_GRID_YZ},            // grid y
    {7, MAX_GRID_YZ},            // grid z
    {8, SHARED_DEFAULT},         // shared memory of a block
    {9, 65536},                  // constant memory
    {10, WARP},                  // warp size
    {11, 2147483647},            // pitch
    {12, 65536},                 // registers of a block
    {13, 1000000},               // clock rate in kHz
    {14, 512},                   // texture alignment
    {15, 1},                     // copies overlap kernels
    {16, MULTIPROCESSORS},       // multiprocessors
    {19, 1},                     // host memory can be mapped
    {31, 1},                     // concurrent kernels
    {36, 1000000},               // memory clock in kHz
    {37, 256},                   // memory bus width in bits
    {38, 4 << 20},               // L2 bytes
    {39, 2048},                  // threads of a multiprocessor
    {40, 2},                     // copy engines
    {41, 1},                     // unified addressing
    {51, 32},                    // texture pitch alignment
    {78, 1},                     // stream priorities
    {79, 1},                     // L1 for globals
    {80, 1},                     // L1 for locals
    {81, 228 * 1024},            // shared memory of a multiprocessor
    {82, 65536},                 // registers of a multiprocessor
    {87, 2},                     // single to double precision ratio
    {90, 1},                     // compute preemption
    {97, SHARED_OPTIN},          // shared memory of a block on request
    {106, 32},                   // blocks of a multiprocessor
    {111, 1024},                 // shared memory reserved in each block
    {115, 1},                    // memory pools
    {131, -1},                   // NUMA node of the device
    {134, -1},                   // NUMA node of the host nearest to it
};

int attribute(const fake::Device& device, int id) {
    switch (id) {
        case 33:  // PCI bus
            return device.index + 1;
        case 34:  // PCI device
        case 50:  // PCI domain
            return 0;
        case 75:
            return device.major;
        case 76:
            return device.minor;
        default:
            break;
    }
    for (const Attribute& entry : ATTRIBUTES) {
        if (entry.id == id) {
            return entry.value;
        }
    }
    return 0;
}

constexpr int LAST_ATTRIBUTE = 161;

void fill_uuid(const fake::Device& device, CUuuid& uuid) {
    std::memset(uuid.bytes, 0, sizeof uuid.bytes);
    std::memcpy(uuid.bytes, "fake-cuda", 9);
    uuid.bytes[15] = static_cast<char>(device.index);
}

}  // namespace

using fake::Call;
using fake::Needs;

FAKE_API cuDeviceGetCount(int* count) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (count == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = static_cast<int>(fake::devices().size());
    return CUDA_SUCCESS;
}

FAKE_API cuDeviceGet(CUdevice* device, int ordinal) {
    Call call(__func__, Needs::Init);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake::device_at(ordinal) == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

namespace {

// The device of a call that needs one and somewhere to write to.
CUresult find(const Call& call, CUdevice index, const void* out, fake::Device*& device) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    device = fake::device_at(index);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

FAKE_API cuDeviceGetName(char* name, int length, CUdevice index) {
    Call call(__func__, Needs::Init);
    fake::Device* device = nullptr;
    if (const CUresult result = find(call, index, name, device)) {
        return result;
    }
    if (length <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::snprintf(name, static_cast<size_t>(length), "Fake CUDA device %d.%d", device->major, device->minor);
    return CUDA_SUCCESS;
}

FAKE_API cuDeviceGetAttribute(int* value, int id, CUdevice index) {
    Call call(__func__, Needs::Init);
    fake::Device* device = nullptr;
    if (const CUresult result = find(call, index, value, device)) {
        return result;
    }
    if (id <= 0 || id > LAST_ATTRIBUTE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = attribute(*device, id);
    return CUDA_SUCCESS;
}

FAKE_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice index) {
    Call call(__func__, Needs::Init);
    fake::Device* device = nullptr;
    if (const CUresult result = find(call, index, bytes, device)) {
        return result;
    }
    *bytes = fake::device_memory();
    return CUDA_SUCCESS;
}

FAKE_API cuDeviceGetUuid(CUuuid* uuid, CUdevice index) {
    Call call(__func__, Needs::Init);
    fake::Device* device = nullptr;
    if (const CUresult result = find(call, index, uuid, device)) {
        return result;
    }
    fill_uuid(*device, *uuid);
    return CUDA_SUCCESS;
}

FAKE_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice index) { return cuDeviceGetUuid(uuid, index); }

FAKE_API cuDeviceGetPCIBusId(char* text, int length, CUdevice index) {
    Call call(__func__, Needs::Init);
    fake::Device* device = nullptr;
    if (const CUresult result = find(call, index, text, device)) {
        return result;
    }
    if (length < 13) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device->index + 1);
    return CUDA_SUCCESS;
}

FAKE_API cuDeviceCanAccessPeer(int* can, CUdevice index, CUdevice peer) {
    Call call(__func__, Needs::Init);
    fake::Device* device = nullptr;
    if (const CUresult result = find(call, index, can, device)) {
        return result;
    }
    if (fake::device_at(peer) == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = fake::can_access(index, peer);
    return CUDA_SUCCESS;
}
