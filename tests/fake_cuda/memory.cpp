// See memory.h. Blocks lie in a map by address under one lock; the bytes themselves belong to whoever runs commands.
//
// New memory is filled with 0xff (NaN as a float of any width, -1 as an integer), freed memory with 0xf5. With
// FAKE_CUDA_GUARD=1 a block ends (but for the alignment to 16 bytes) at a page that cannot be touched, and freed
// memory cannot be touched at all.

#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "settings.h"

namespace fake {

namespace {

constexpr size_t ALIGNMENT = 256;
constexpr size_t GUARD = 256;
constexpr size_t PAGE = 4096;
constexpr unsigned char GUARD_BYTE = 0xb9;
constexpr unsigned char NEW_BYTE = 0xff;
constexpr unsigned char FREED_BYTE = 0xf5;
constexpr size_t QUARANTINE_BYTES = 32u << 20;
constexpr size_t QUARANTINE_BLOCKS = 64;  // few: who looks for leaks waits until it is full

struct Memory {
    std::mutex mutex;
    std::map<uint64_t, std::shared_ptr<Block>> blocks;  // by address; freed ones while in quarantine
    std::deque<std::shared_ptr<Block>> quarantine;
    size_t quarantine_bytes = 0;
};

Memory& memory() {
    static Memory& memory = *new Memory;
    return memory;
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }
bool page_guards() { return setting_number("GUARD", 0) != 0; }

bool filled(const unsigned char* at, const unsigned char* end, unsigned char value) {
    return std::all_of(at, end, [value](unsigned char byte) { return byte == value; });
}

// The guard zones around the data: all that the system gave but the data and a page without access.
const unsigned char* guard_begin(const Block& block) { return std::max(block.base, block.data - GUARD); }
const unsigned char* guard_end(const Block& block) {
    return std::min(block.base + block.base_size, block.data + block.size + GUARD);
}

bool guards_whole(const Block& block) {
    return filled(guard_begin(block), block.data, GUARD_BYTE) &&
           filled(block.data + block.size, guard_end(block), GUARD_BYTE);
}

void report_guard(const Block& block, const char* where) {
    const unsigned char* before = block.data;
    while (before > guard_begin(block) && before[-1] == GUARD_BYTE) {
        --before;
    }
    const unsigned char* end = block.data + block.size;
    const unsigned char* behind = end;
    while (behind < guard_end(block) && *behind == GUARD_BYTE) {
        ++behind;
    }
    if (behind < guard_end(block)) {
        report("%s: wrote outside a device block of %zu bytes at %p: first changed byte is %td behind its end", where,
               block.size, static_cast<void*>(block.data), behind - end);
    } else {
        report("%s: wrote outside a device block of %zu bytes at %p: last changed byte is %td before its begin", where,
               block.size, static_cast<void*>(block.data), block.data - before + 1);
    }
}

// Mends the guard zones, so that one fault is reported once.
void mend_guards(Block& block) {
    std::memset(const_cast<unsigned char*>(guard_begin(block)), GUARD_BYTE, static_cast<size_t>(block.data - guard_begin(block)));
    unsigned char* end = block.data + block.size;
    std::memset(end, GUARD_BYTE, static_cast<size_t>(guard_end(block) - end));
}

// Whether an address of the block, taken for two numbers of 32 bits, has a small one first: so looks a size in the
// arguments of a kernel, with what is left in the padding behind it, the upper half of some pointer.
bool looks_like_sizes(const unsigned char* base, size_t size) {
    constexpr uint64_t SMALL = 1u << 28;
    const uint64_t low = address_of(base) & 0xffffffffu;
    return low < SMALL || low + size > 0xffffffffu;
}

// Pages at an address that does not look like sizes; null where the system has none.
unsigned char* map_elsewhere(size_t size) {
    constexpr uint64_t BEGIN = 0x6d3b40000000ull;
    constexpr uint64_t STEP = 1ull << 32;
    static std::atomic<uint64_t> next{BEGIN};
    const uint64_t room = round_up(size, PAGE) + PAGE;
    for (int tries = 0; tries < 64; ++tries) {
        const uint64_t hint = next.fetch_add(room);
        if (looks_like_sizes(reinterpret_cast<unsigned char*>(hint), size)) {
            next = (hint & ~(STEP - 1)) + STEP + (BEGIN & (STEP - 1));
            continue;
        }
        void* pages = mmap(reinterpret_cast<void*>(hint), size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages != MAP_FAILED && !looks_like_sizes(static_cast<unsigned char*>(pages), size)) {
            return static_cast<unsigned char*>(pages);
        }
        if (pages != MAP_FAILED) {
            munmap(pages, size);
        }
    }
    return nullptr;
}

bool place_plain(Block& block) {
    block.base_size = round_up(block.size + 2 * GUARD, ALIGNMENT);
    block.base = static_cast<unsigned char*>(std::aligned_alloc(ALIGNMENT, block.base_size));
    constexpr size_t LARGE = 1u << 30;  // too large to lie elsewhere
    if (block.base != nullptr && block.base_size < LARGE && looks_like_sizes(block.base, block.base_size)) {
        std::free(block.base);
        block.base = map_elsewhere(block.base_size);
        block.mapped = true;
    }
    block.data = block.base + GUARD;
    return block.base != nullptr;
}

// `base_size` leaves out the page without access behind the block.
bool place_before_page(Block& block) {
    const size_t data = round_up(block.size, 16);
    block.base_size = round_up(data + GUARD, PAGE);
    void* pages = mmap(nullptr, block.base_size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return false;
    }
    block.base = static_cast<unsigned char*>(pages);
    mprotect(block.base + block.base_size, PAGE, PROT_NONE);
    block.data = block.base + block.base_size - data;
    block.paged = true;
    return true;
}

void drop_from_map(const Block& block) { memory().blocks.erase(address_of(block.data)); }

// Lets the oldest blocks out of quarantine until it is small enough. Returns a block that was written to.
std::shared_ptr<Block> shrink_quarantine_locked() {
    Memory& m = memory();
    std::shared_ptr<Block> damaged;
    while (m.quarantine_bytes > QUARANTINE_BYTES || m.quarantine.size() > QUARANTINE_BLOCKS) {
        const std::shared_ptr<Block> oldest = std::move(m.quarantine.front());
        m.quarantine.pop_front();
        m.quarantine_bytes -= oldest->size;
        if (!oldest->paged && !filled(oldest->data, oldest->data + oldest->size, FREED_BYTE)) {
            report("a device block of %zu bytes at %p was written to after it was freed", oldest->size,
                   static_cast<void*>(oldest->data));
            damaged = oldest;
        }
        drop_from_map(*oldest);
    }
    return damaged;
}

bool reserve(Device& device, size_t size) {
    const size_t total = device_memory();
    size_t used = device.used.load();
    do {
        if (size > total || used > total - size) {
            return false;
        }
    } while (!device.used.compare_exchange_weak(used, used + size));
    return true;
}

}  // namespace

Block::~Block() {
    if (base == nullptr) {
        return;
    }
    if (paged) {
        munmap(base, base_size + PAGE);
    } else if (mapped) {
        munmap(base, base_size);
    } else {
        std::free(base);
    }
}

size_t device_memory() { return static_cast<size_t>(setting_number("MEMORY", 1ll << 30)); }

std::shared_ptr<Block> allocate(Context& context, size_t size, Life life, const std::shared_ptr<Pool>& pool) {
    if (!reserve(*context.device, size)) {
        return nullptr;
    }
    auto block = std::make_shared<Block>();
    block->context = &context;
    block->life = life;
    block->size = size;
    if (!(page_guards() ? place_before_page(*block) : place_plain(*block))) {
        context.device->used -= size;
        return nullptr;
    }
    mend_guards(*block);
    std::memset(block->data, NEW_BYTE, size);
    block->pool = pool;
    if (pool != nullptr) {
        const uint64_t used = pool->used += size;
        uint64_t high = pool->used_high.load();
        while (used > high && !pool->used_high.compare_exchange_weak(high, used)) {
        }
    }
    const std::lock_guard<std::mutex> guard(memory().mutex);
    memory().blocks[address_of(block->data)] = block;
    return block;
}

std::shared_ptr<Block> allocate_pinned(Context& context, size_t size) {
    auto block = std::make_shared<Block>();
    block->context = &context;
    block->place = Place::Pinned;
    block->life = Life::Live;
    block->size = size;
    if (!place_plain(*block)) {
        return nullptr;
    }
    mend_guards(*block);
    std::memset(block->data, NEW_BYTE, size);
    const std::lock_guard<std::mutex> guard(memory().mutex);
    memory().blocks[address_of(block->data)] = block;
    return block;
}

void add_module_range(Context& context, void* data, size_t size) {
    auto block = std::make_shared<Block>();
    block->context = &context;
    block->place = Place::Module;
    block->life = Life::Live;
    block->data = static_cast<unsigned char*>(data);
    block->size = size;
    const std::lock_guard<std::mutex> guard(memory().mutex);
    memory().blocks[address_of(data)] = block;
}

void remove_module_range(void* data) {
    const std::lock_guard<std::mutex> guard(memory().mutex);
    memory().blocks.erase(address_of(data));
}

std::shared_ptr<void> keep_for_graph(const std::shared_ptr<Block>& block) {
    return std::shared_ptr<void>(block.get(), [block](void*) {
        const std::lock_guard<std::mutex> guard(memory().mutex);
        // It is not there any more where its context has gone before.
        if (memory().blocks.erase(address_of(block->data)) == 0) {
            return;
        }
        if (block->pool != nullptr) {
            block->pool->used -= block->size;
        }
        block->context->device->graph_cached += block->size;
    });
}

void take_cached(Device& device, size_t size) {
    size_t cached = device.graph_cached.load();
    size_t taken;
    do {
        taken = std::min(cached, size);
    } while (!device.graph_cached.compare_exchange_weak(cached, cached - taken));
    device.used -= taken;
}

void trim_graphs(Device& device) { take_cached(device, SIZE_MAX); }

void account_free(Block& block) {
    if (block.place == Place::Device) {
        block.context->device->used -= block.size;
        if (block.pool != nullptr) {
            block.pool->used -= block.size;
        }
    }
}

CUresult retire(const std::shared_ptr<Block>& block) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> guard(m.mutex);
    if (block->life == Life::Freed) {
        report("a block of %zu bytes at %p is freed twice", block->size, static_cast<void*>(block->data));
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    CUresult result = CUDA_SUCCESS;
    if (!guards_whole(*block)) {
        report_guard(*block, "free");
        mend_guards(*block);
        result = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    block->life = Life::Freed;
    std::memset(block->data, FREED_BYTE, block->size);
    if (block->of_graph) {
        return result;
    }
    if (block->paged) {
        mprotect(block->base, block->base_size, PROT_NONE);
    }
    m.quarantine.push_back(block);
    m.quarantine_bytes += block->size;
    const std::shared_ptr<Block> damaged = shrink_quarantine_locked();
    return damaged != nullptr && damaged->context == block->context ? CUDA_ERROR_ILLEGAL_ADDRESS : result;
}

CUresult revive(const std::shared_ptr<Block>& block) {
    const std::lock_guard<std::mutex> guard(memory().mutex);
    if (block->life == Life::Live) {
        report("a graph allocates its block of %zu bytes at %p, which the launch before it has not freed", block->size,
               static_cast<void*>(block->data));
        return CUDA_ERROR_INVALID_VALUE;
    }
    block->life = Life::Live;
    block->free_submitted = false;
    std::memset(block->data, NEW_BYTE, block->size);
    return CUDA_SUCCESS;
}

CUresult bring_to_life(const std::shared_ptr<Block>& block) {
    const std::lock_guard<std::mutex> guard(memory().mutex);
    block->life = Life::Live;
    return CUDA_SUCCESS;
}

bool mark_for_free(Block& block) {
    const std::lock_guard<std::mutex> guard(memory().mutex);
    const bool may = block.life != Life::Freed && !block.free_submitted;
    block.free_submitted = true;
    return may;
}

void free_all(Context& context) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> guard(m.mutex);
    for (auto at = m.blocks.begin(); at != m.blocks.end();) {
        const Block& block = *at->second;
        if (block.context == &context && block.life != Life::Freed) {
            if (!block.free_submitted || block.of_graph) {
                account_free(*at->second);
            }
            at = m.blocks.erase(at);
        } else {
            ++at;
        }
    }
}

std::shared_ptr<Block> block_at(uint64_t address) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> guard(m.mutex);
    auto found = m.blocks.upper_bound(address);
    if (found == m.blocks.begin()) {
        return nullptr;
    }
    --found;
    const Block& block = *found->second;
    return address - found->first < std::max<size_t>(block.size, 1) ? found->second : nullptr;
}

std::string describe(uint64_t address) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> guard(m.mutex);
    auto found = m.blocks.upper_bound(address);
    char text[160];
    if (found == m.blocks.begin()) {
        std::snprintf(text, sizeof text, "%#llx, no device memory", static_cast<unsigned long long>(address));
        return text;
    }
    --found;
    const Block& block = *found->second;
    const char* life = block.life == Life::Freed ? "freed " : block.life == Life::Reserved ? "not yet allocated " : "";
    if (address - found->first < block.size + PAGE) {
        std::snprintf(text, sizeof text, "%#llx, byte %llu of a %sblock of %zu bytes at %p",
                      static_cast<unsigned long long>(address), static_cast<unsigned long long>(address - found->first),
                      life, block.size, static_cast<void*>(block.data));
    } else {
        std::snprintf(text, sizeof text, "%#llx, far from any block", static_cast<unsigned long long>(address));
    }
    return text;
}

bool valid_to_submit(uint64_t address, size_t size) {
    const std::shared_ptr<Block> block = block_at(address);
    if (block == nullptr) {
        return false;
    }
    const size_t offset = address - address_of(block->data);
    const std::lock_guard<std::mutex> guard(memory().mutex);
    return block->life != Life::Freed && !block->free_submitted && size <= block->size - offset;
}

bool valid_to_touch(uint64_t address, size_t size, const char* what) {
    const std::shared_ptr<Block> block = block_at(address);
    {
        const std::lock_guard<std::mutex> guard(memory().mutex);
        if (block != nullptr && block->life == Life::Live && size <= block->size - (address - address_of(block->data))) {
            return true;
        }
    }
    report("%s touches %zu bytes at %s", what, size, describe(address).c_str());
    return false;
}

bool reaches(const Context& context, const Block& block) {
    if (block.context == &context) {
        return true;
    }
    const std::lock_guard<std::mutex> guard(global_lock());
    return block.pool != nullptr ? block.pool->access.count(context.device->index) > 0
                                 : context.peers.count(block.context->device->index) > 0;
}

bool valid_argument(uint64_t value, const char* kernel, unsigned index, const Context& context) {
    const std::shared_ptr<Block> block = block_at(value);
    if (block == nullptr) {
        return true;
    }
    if (block->place == Place::Device && !reaches(context, *block)) {
        report("kernel %s: argument %u points to memory of another device, without access to it", kernel, index);
        return false;
    }
    {
        const std::lock_guard<std::mutex> guard(memory().mutex);
        if (block->life == Life::Live) {
            return true;
        }
    }
    report("kernel %s: argument %u points to %s", kernel, index, describe(value).c_str());
    return false;
}

void check_guards(Context& context) {
    Memory& m = memory();
    bool damaged = false;
    {
        const std::lock_guard<std::mutex> guard(m.mutex);
        for (const auto& entry : m.blocks) {
            Block& block = *entry.second;
            if (block.context == &context && block.base != nullptr && block.life != Life::Freed && !guards_whole(block)) {
                report_guard(block, "synchronise");
                mend_guards(block);
                damaged = true;
            }
        }
    }
    if (damaged) {
        context.fail(CUDA_ERROR_ILLEGAL_ADDRESS, "a guard zone");
    }
}

bool check_guard_at(uint64_t address, const char* kernel) {
    const std::shared_ptr<Block> block = block_at(address);
    if (block == nullptr || block->base == nullptr) {
        return true;
    }
    const std::lock_guard<std::mutex> guard(memory().mutex);
    if (block->life != Life::Live || guards_whole(*block)) {
        return true;
    }
    report_guard(*block, (std::string("kernel ") + kernel).c_str());
    mend_guards(*block);
    return false;
}

}  // namespace fake
