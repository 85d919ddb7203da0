// Launching kernels, and what a function says of itself.

#include <algorithm>
#include <cstring>

#include "block.h"
#include "capture.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace fake {

namespace {

enum FunctionAttribute {
    MAX_THREADS_OF_BLOCK = 0,
    SHARED_BYTES = 1,
    CONST_BYTES = 2,
    LOCAL_BYTES = 3,
    REGISTERS = 4,
    PTX_VERSION = 5,
    BINARY_VERSION = 6,
    CACHE_MODE = 7,
    MAX_DYNAMIC_SHARED = 8,
    CARVEOUT = 9,
    LAST = 15,
};

// What the real compiler would have to tell; the fake says the same of every kernel.
constexpr int REGISTERS_OF_KERNEL = 32;

// The arguments of a launch, copied, each at an offset of its own.
struct Arguments {
    std::vector<uint64_t> bytes;
    std::vector<size_t> offsets;
};

size_t align_up(size_t at, size_t alignment) { return (at + alignment - 1) / alignment * alignment; }

Arguments lay_out(const fake_cuda::Entry& entry) {
    Arguments arguments;
    size_t at = 0;
    for (unsigned i = 0; i < entry.count; ++i) {
        at = align_up(at, entry.aligns[i]);
        arguments.offsets.push_back(at);
        at += entry.sizes[i];
    }
    arguments.bytes.resize(align_up(at, 16) / 8 + 2);
    return arguments;
}

// The buffer form of arguments: pairs of a key and a value.
bool read_extra(void** extra, const unsigned char*& buffer, size_t& size) {
    constexpr uintptr_t END = 0;
    constexpr uintptr_t POINTER = 1;
    constexpr uintptr_t SIZE = 2;
    size = 0;
    buffer = nullptr;
    for (; reinterpret_cast<uintptr_t>(*extra) != END; extra += 2) {
        const auto key = reinterpret_cast<uintptr_t>(*extra);
        if (key == POINTER) {
            buffer = static_cast<const unsigned char*>(extra[1]);
        } else if (key == SIZE) {
            size = *static_cast<size_t*>(extra[1]);
        } else {
            return false;
        }
    }
    return buffer != nullptr;
}

CUresult copy_arguments(const fake_cuda::Entry& entry, void** parameters, void** extra, Arguments& arguments) {
    arguments = lay_out(entry);
    if (parameters != nullptr && extra != nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto* bytes = reinterpret_cast<unsigned char*>(arguments.bytes.data());
    if (extra != nullptr) {
        const unsigned char* buffer;
        size_t size;
        const size_t needed = entry.count > 0 ? arguments.offsets.back() + entry.sizes[entry.count - 1] : 0;
        if (!read_extra(extra, buffer, size) || size < needed || size > MAX_PARAMETERS) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        std::memcpy(bytes, buffer, needed);
        return CUDA_SUCCESS;
    }
    for (unsigned i = 0; i < entry.count; ++i) {
        if (parameters == nullptr || parameters[i] == nullptr) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        std::memcpy(bytes + arguments.offsets[i], parameters[i], entry.sizes[i]);
    }
    return CUDA_SUCCESS;
}

// Calls `check` with every aligned word of the arguments, which may be a pointer, and the argument's number.
template <class Check>
bool all_words(const fake_cuda::Entry& entry, const Arguments& arguments, Check check) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(arguments.bytes.data());
    bool good = true;
    for (unsigned i = 0; i < entry.count; ++i) {
        for (size_t at = 0; entry.aligns[i] >= 8 && at + 8 <= entry.sizes[i]; at += 8) {
            uint64_t word;
            std::memcpy(&word, bytes + arguments.offsets[i] + at, sizeof word);
            good = check(word, i) && good;
        }
    }
    return good;
}

CUresult run(const Launch& launch, const Arguments& arguments) {
    const fake_cuda::Entry& entry = *launch.entry;
    const Context& context = *launch.module->context;
    const auto valid = [&](uint64_t word, unsigned i) { return valid_argument(word, entry.name, i, context); };
    const bool live = all_words(entry, arguments, valid);
    if (!live) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    // A kernel may change its parameters, so every thread gets a copy: the wrapper passes them by value.
    Arguments copy = arguments;
    std::vector<void*> pointers;
    for (const size_t offset : copy.offsets) {
        pointers.push_back(reinterpret_cast<unsigned char*>(copy.bytes.data()) + offset);
    }
    if (const CUresult result = run_launch(launch, pointers.data())) {
        return result;
    }
    const bool whole = all_words(entry, arguments, [&](uint64_t word, unsigned) { return check_guard_at(word, entry.name); });
    return whole ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

bool good_grid(const fake_cuda::Index& grid) {
    return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= MAX_GRID_X && grid.y <= MAX_GRID_YZ && grid.z <= MAX_GRID_YZ;
}

CUresult check_block(const Function& function, const Launch& launch) {
    const fake_cuda::Index& b = launch.block;
    const bool shape = b.x > 0 && b.y > 0 && b.z > 0 && b.x <= MAX_THREADS && b.y <= MAX_THREADS && b.z <= MAX_BLOCK_Z;
    if (!shape || b.x * b.y * b.z > MAX_THREADS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (b.x * b.y * b.z > launch.entry->max_threads) {
        report("kernel %s is launched with %u threads a block, its launch bounds allow %u", launch.entry->name,
               b.x * b.y * b.z, launch.entry->max_threads);
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    const size_t limit = function.dynamic_limit.load();
    const bool fits = launch.shared <= limit && launch.shared + function.static_shared <= std::max<size_t>(limit, SHARED_DEFAULT);
    if (!fits) {
        report("kernel %s is launched with %u bytes of dynamic and %zu of static shared memory, its limit is %zu",
               launch.entry->name, launch.shared, function.static_shared, limit);
    }
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Whether the launch may begin before the kernel before it has ended. Here it never does.
bool may_overlap(const CUlaunchConfig& config) {
    constexpr int PROGRAMMATIC_STREAM_SERIALIZATION = 6;
    const CUlaunchAttribute* begin = config.attrs;
    return std::any_of(begin, begin + config.numAttrs, [](const CUlaunchAttribute& attribute) {
        int allowed;
        std::memcpy(&allowed, &attribute.value, sizeof allowed);
        return attribute.id == PROGRAMMATIC_STREAM_SERIALIZATION && allowed != 0;
    });
}

CUresult launch_kernel(const Call& call, const CUlaunchConfig& config, CUfunction handle, void** parameters, void** extra) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto function = functions().find(handle);
    const auto module = function != nullptr ? function->module.lock() : nullptr;
    const auto stream = stream_of(call, config.hStream);
    if (module == nullptr || stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (module->context != call.context || stream->context != call.context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    Launch launch;
    launch.module = module;
    launch.entry = function->entry;
    launch.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    launch.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    launch.shared = config.sharedMemBytes;
    if (!good_grid(launch.grid)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = check_block(*function, launch)) {
        return result;
    }
    Arguments arguments;
    if (const CUresult result = copy_arguments(*launch.entry, parameters, extra, arguments)) {
        return result;
    }
    log("launch kernel=%s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%u capture=%d overlap=%d", launch.entry->name, launch.grid.x,
        launch.grid.y, launch.grid.z, launch.block.x, launch.block.y, launch.block.z, launch.shared, stream->id,
        is_capturing(stream), may_overlap(config));
    Work work = {NodeKind::Kernel, launch.entry->name, [launch, arguments] { return run(launch, arguments); },
                 launch.entry, nullptr};
    return enqueue(call, stream, std::move(work));
}

CUresult attribute_of(const Function& function, int attribute, int& value) {
    const auto module = function.module.lock();
    const int version = module != nullptr ? module->context->device->major * 10 + module->context->device->minor : 0;
    switch (attribute) {
        case MAX_THREADS_OF_BLOCK:
            value = static_cast<int>(std::min(function.entry->max_threads, MAX_THREADS));
            return CUDA_SUCCESS;
        case SHARED_BYTES:
            value = static_cast<int>(function.static_shared);
            return CUDA_SUCCESS;
        case REGISTERS:
            value = REGISTERS_OF_KERNEL;
            return CUDA_SUCCESS;
        case PTX_VERSION:
        case BINARY_VERSION:
            value = version;
            return CUDA_SUCCESS;
        case MAX_DYNAMIC_SHARED:
            value = static_cast<int>(function.dynamic_limit.load());
            return CUDA_SUCCESS;
        case CARVEOUT:
            value = function.carveout;
            return CUDA_SUCCESS;
        default:
            value = 0;
            return attribute > 0 && attribute <= LAST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

// Blocks that one multiprocessor takes: by threads, blocks and shared memory.
int resident_blocks(const Function& function, unsigned threads, size_t dynamic) {
    constexpr size_t shared_total = 228 * 1024;
    constexpr size_t shared_reserved = 1024;
    const unsigned rounded = (threads + WARP - 1) / WARP * WARP;
    const size_t shared = function.static_shared + dynamic + shared_reserved;
    if (rounded == 0 || rounded > std::min(function.entry->max_threads + WARP - 1, MAX_THREADS)) {
        return 0;
    }
    return static_cast<int>(std::min({size_t{2048} / rounded, size_t{32}, shared_total / shared}));
}

}  // namespace

}  // namespace fake

using fake::Call;

FAKE_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters,
                        void** extra) {
    const CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, nullptr, 0};
    return fake::launch_kernel(Call(__func__), config, function, parameters, extra);
}

FAKE_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    constexpr int COOPERATIVE = 2;
    constexpr int CLUSTER = 4;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        // Blocks run one after the other, so that they cannot wait for one another.
        if (config->attrs[i].id == COOPERATIVE || config->attrs[i].id == CLUSTER) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return fake::launch_kernel(call, *config, function, parameters, extra);
}

FAKE_API cuFuncGetAttribute(int* value, int attribute, CUfunction handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto function = fake::functions().find(handle);
    if (function == nullptr || value == nullptr) {
        return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    return fake::attribute_of(*function, attribute, *value);
}

FAKE_API cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto function = fake::functions().find(handle);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (attribute == fake::CARVEOUT && value >= -1 && value <= 100) {
        function->carveout = value;
        return CUDA_SUCCESS;
    }
    const bool fits = value >= 0 && static_cast<size_t>(value) + function->static_shared <= SHARED_OPTIN;
    if (attribute != fake::MAX_DYNAMIC_SHARED || !fits) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->dynamic_limit = static_cast<unsigned>(value);
    return CUDA_SUCCESS;
}

FAKE_API cuFuncSetCacheConfig(CUfunction handle, int config) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (fake::functions().find(handle) == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return config >= 0 && config <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle, int threads, size_t dynamic,
                                                              unsigned flags) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto function = fake::functions().find(handle);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (blocks == nullptr || threads <= 0 || flags > 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *blocks = fake::resident_blocks(*function, static_cast<unsigned>(threads), dynamic);
    return CUDA_SUCCESS;
}

FAKE_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads, size_t dynamic) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, dynamic, 0);
}

FAKE_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize dynamic_of,
                                          size_t dynamic, int limit) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto function = fake::functions().find(handle);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (grid == nullptr || block == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned most = std::min(function->entry->max_threads, MAX_THREADS);
    most = limit > 0 ? std::min(most, static_cast<unsigned>(limit)) : most;
    int best = 0;
    for (unsigned threads = most / WARP * WARP; threads >= WARP; threads -= WARP) {
        const size_t shared = dynamic_of != nullptr ? dynamic_of(static_cast<int>(threads)) : dynamic;
        const int blocks = fake::resident_blocks(*function, threads, shared);
        if (blocks * static_cast<int>(threads) > best) {
            best = blocks * static_cast<int>(threads);
            *block = static_cast<int>(threads);
            *grid = blocks * MULTIPROCESSORS;
        }
    }
    return best > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
