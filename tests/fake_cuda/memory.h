// Device and pinned memory: who owns which addresses, guard zones, and the poison of what was freed.
//
// A block's states: `Reserved` (a stream-ordered allocation that its stream has not reached, or a graph's between two
// launches), `Live`, `Freed` (poisoned, in quarantine). `free_submitted` is set when a stream-ordered free is called
// for; the block is then out of bounds for new calls, while commands submitted earlier still run.
#pragma once

#include <memory>
#include <string>

#include "state.h"

namespace fake {

enum class Place { Device, Pinned, Module };
enum class Life { Reserved, Live, Freed };

struct Block {
    Context* context = nullptr;
    Place place = Place::Device;
    Life life = Life::Reserved;
    bool free_submitted = false;
    bool of_graph = false;
    bool paged = false;   // followed by a page without access
    bool mapped = false;  // pages of its own
    unsigned char* data = nullptr;
    size_t size = 0;
    unsigned char* base = nullptr;  // what the system gave, with guard zones
    size_t base_size = 0;
    std::shared_ptr<Pool> pool;
    ~Block();
};

size_t device_memory();

// A new block on the context's device, in state `life`; null where the device's memory does not suffice.
std::shared_ptr<Block> allocate(Context& context, size_t size, Life life, const std::shared_ptr<Pool>& pool);
std::shared_ptr<Block> allocate_pinned(Context& context, size_t size);
// Makes a module's variable known as device memory.
void add_module_range(Context& context, void* data, size_t size);
void remove_module_range(void* data);

// Gives the block's bytes back to the account of its device.
void account_free(Block& block);
// Checks the guards, poisons, and puts into quarantine. The result is what the command that frees it gives.
CUresult retire(const std::shared_ptr<Block>& block);
// The stream has reached the allocation.
CUresult bring_to_life(const std::shared_ptr<Block>& block);
// Marks the block as being freed; false where it already is.
bool mark_for_free(Block& block);
// A graph's block comes to life for one launch.
CUresult revive(const std::shared_ptr<Block>& block);
// Owns a graph's block: when the last copy goes its bytes are kept for other graphs, until trim_graphs.
std::shared_ptr<void> keep_for_graph(const std::shared_ptr<Block>& block);
// Makes so many of the bytes that are kept for graphs free, as far as there are.
void take_cached(Device& device, size_t size);
void trim_graphs(Device& device);
void free_all(Context& context);

// The block that holds `address`, freed ones too; null if none does.
std::shared_ptr<Block> block_at(uint64_t address);
// What is at an address, for messages.
std::string describe(uint64_t address);

// Whether a call may name these bytes: all in one block that is not freed.
bool valid_to_submit(uint64_t address, size_t size);
// Whether a command may touch these bytes now.
bool valid_to_touch(uint64_t address, size_t size, const char* what);
// Whether a kernel may be given this value: false for an address in freed memory, in memory not yet allocated, or on
// another device to which the context has no access.
bool valid_argument(uint64_t value, const char* kernel, unsigned index, const Context& context);

// Whether a device reaches this memory of a GPU: its own; another's pool by leave of the pool, other memory by leave of
// the contexts.
bool reaches(const Context& context, const Block& block);

// Looks at the guard zones of all the context's blocks; a damaged one fails the context.
void check_guards(Context& context);
// The same for the block that holds `address`, if any.
bool check_guard_at(uint64_t address, const char* kernel);

}  // namespace fake
