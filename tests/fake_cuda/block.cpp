// See block.h.
//
// A fiber takes threads of the block one after the other and runs each to its end. A thread that waits (barrier, warp
// operation) keeps its fiber, and hands over to a thread that can run, or to a further fiber for the threads not yet
// begun; a block whose threads never wait needs one fiber and one switch. Threads begin, and go on after a barrier, in
// ascending and descending order by turns, so that a missing barrier shows; the one that comes last is then the first
// to go on, and need not leave its fiber. Threads left waiting when nothing can run any more have diverged, which is
// an error of the launch.

#include "block.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "fault.h"
#include "fiber.h"
#include "memory.h"
#include "settings.h"
#include "warp.h"

namespace fake {

namespace {

constexpr size_t SHARED_GUARD = 256;
constexpr unsigned char SHARED_GUARD_BYTE = 0xb9;

enum class State { Running, AtBarrier, Done };

struct Thread {
    State state = State::Running;
    Fiber* fiber = nullptr;
    bool predicate = false;
    uint64_t result = 0;
};

class Runner {
  public:
    Runner(const Launch& launch, void** arguments);
    ~Runner();
    CUresult run();

    unsigned barrier(bool predicate, int line, unsigned* count);
    uint64_t warp(const WarpCall& call);
    unsigned lane() const { return current_ % WARP; }
    [[noreturn]] void fail(CUresult code, const std::string& what);
    void work();
    FaultFrame& fault_frame() { return fault_; }
    CUresult faulted();

  private:
    void begin_block(const fake_cuda::Index& index);
    CUresult run_block();
    void enter(unsigned thread) {
        current_ = thread;
        *thread_index_ = indices_[thread];
    }
    Fiber* idle_fiber();
    Fiber* next_fiber();
    void suspend();
    void wake(unsigned thread) { ready_[ready_count_++] = thread; }
    void finish();
    void release_barrier();
    bool try_warp(unsigned warp, unsigned mask);
    CUresult diverged();
    CUresult check_dynamic_shared() const;
    std::string place(unsigned thread) const;

    const Launch& launch_;
    void** arguments_;
    unsigned count_;
    std::vector<fake_cuda::Index> indices_;
    std::vector<Thread> threads_;
    std::vector<WarpState> warps_;
    std::vector<unsigned> ready_;  // a stack of threads that can go on, each at most once
    unsigned ready_count_ = 0;
    fake_cuda::Index* thread_index_;  // the kernel's
    std::vector<Fiber*> fibers_;  // all in use
    std::vector<Fiber*> idle_;
    Fiber scheduler_;
    Fiber* running_ = nullptr;
    unsigned current_ = 0;
    unsigned begun_ = 0;
    unsigned live_ = 0;
    unsigned waiting_ = 0;  // at the barrier
    int barrier_line_ = 0;
    bool begin_backwards_ = false;
    bool backwards_ = false;
    uint64_t blocks_ = 0;
    CUresult failure_ = CUDA_SUCCESS;
    FaultFrame fault_;
};

thread_local Runner* active = nullptr;

void fiber_main() { active->work(); }

Runner::Runner(const Launch& launch, void** arguments)
    : launch_(launch), arguments_(arguments), count_(launch.block.x * launch.block.y * launch.block.z),
      threads_(count_), warps_((count_ + WARP - 1) / WARP), ready_(count_),
      thread_index_(launch.module->code->thread_index) {
    indices_.reserve(count_);
    for (unsigned z = 0; z < launch.block.z; ++z) {
        for (unsigned y = 0; y < launch.block.y; ++y) {
            for (unsigned x = 0; x < launch.block.x; ++x) {
                indices_.push_back({x, y, z});
            }
        }
    }
}

Runner::~Runner() {
    for (Fiber* fiber : fibers_) {
        give_fiber(fiber);
    }
}

std::string Runner::place(unsigned thread) const {
    const fake_cuda::Index& b = *launch_.module->code->block_index;
    const fake_cuda::Index& t = indices_[thread];
    char text[200];
    std::snprintf(text, sizeof text, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", launch_.entry->name, b.x, b.y, b.z,
                  t.x, t.y, t.z);
    return text;
}

// Poisons the shared memory, differently from block to block, and puts a guard behind the dynamic part.
void Runner::begin_block(const fake_cuda::Index& index) {
    const fake_cuda::Module& code = *launch_.module->code;
    *code.block_index = index;
    const int poison = blocks_ % 2 == 0 ? 0xff : 0x7d;
    for (const Module::Range& range : launch_.module->shared) {
        std::memset(range.begin, poison, range.size);
    }
    std::memset(code.dynamic_shared, poison, launch_.shared);
    std::memset(code.dynamic_shared + launch_.shared, SHARED_GUARD_BYTE, SHARED_GUARD);
    for (Thread& thread : threads_) {
        thread = Thread();
    }
    for (unsigned w = 0; w < warps_.size(); ++w) {
        const unsigned lanes = std::min(WARP, count_ - w * WARP);
        warps_[w].waiting = 0;
        warps_[w].live = lanes == WARP ? ~0u : (1u << lanes) - 1;
    }
    begun_ = 0;
    live_ = count_;
    waiting_ = 0;
    ready_count_ = 0;
    begin_backwards_ = blocks_ % 2 != 0;
    backwards_ = begin_backwards_;
    ++blocks_;
}

Fiber* Runner::idle_fiber() {
    if (idle_.empty()) {
        Fiber* fiber = take_fiber();
        if (fiber == nullptr) {
            return nullptr;
        }
        start(*fiber, fiber_main);
        fibers_.push_back(fiber);
        idle_.push_back(fiber);
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
}

// The life of a fiber: threads not yet begun, as long as no thread that waited can go on.
void Runner::work() {
    for (;;) {
        Fiber* self = running_;
        while (begun_ < count_ && ready_count_ == 0) {
            const unsigned turn = begun_++;
            const unsigned thread = begin_backwards_ ? count_ - 1 - turn : turn;
            enter(thread);
            launch_.entry->call(arguments_);
            finish();
        }
        idle_.push_back(self);
        switch_fiber(*self, *next_fiber());
    }
}

// What goes on now: a thread that can, a fiber for those not yet begun, or else the scheduler.
Fiber* Runner::next_fiber() {
    if (ready_count_ > 0) {
        const unsigned thread = ready_[--ready_count_];
        enter(thread);
        running_ = threads_[thread].fiber;
        return running_;
    }
    if (begun_ == count_) {
        return &scheduler_;
    }
    running_ = idle_fiber();
    if (running_ != nullptr) {
        return running_;
    }
    report("no memory for the stack of a thread of kernel %s", launch_.entry->name);
    failure_ = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return &scheduler_;
}

CUresult Runner::run_block() {
    Fiber* first = next_fiber();
    if (first != &scheduler_) {
        switch_fiber(scheduler_, *first);
    }
    if (failure_ != CUDA_SUCCESS) {
        return failure_;
    }
    return live_ == 0 ? check_dynamic_shared() : diverged();
}

CUresult Runner::run() {
    const fake_cuda::Module& code = *launch_.module->code;
    *code.grid_size = launch_.grid;
    *code.block_size = launch_.block;
    for (unsigned z = 0; z < launch_.grid.z; ++z) {
        for (unsigned y = 0; y < launch_.grid.y; ++y) {
            for (unsigned x = 0; x < launch_.grid.x; ++x) {
                begin_block({x, y, z});
                if (const CUresult result = run_block()) {
                    return result;
                }
            }
        }
    }
    return CUDA_SUCCESS;
}

// Leaves the thread, which is woken already or will be, and comes back when it is its turn: at once where it is next.
void Runner::suspend() {
    const unsigned self = current_;
    if (ready_count_ > 0 && ready_[ready_count_ - 1] == self) {
        --ready_count_;
    } else {
        Fiber* fiber = running_;
        threads_[self].fiber = fiber;
        switch_fiber(*fiber, *next_fiber());
    }
}

void Runner::finish() {
    threads_[current_].state = State::Done;
    --live_;
    const unsigned warp = current_ / WARP;
    warps_[warp].live &= ~(1u << current_ % WARP);
    if (waiting_ > 0 && waiting_ == live_) {
        release_barrier();
    }
    for (unsigned open = warps_[warp].waiting; open != 0; open &= open - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctz(open));
        if (try_warp(warp, warps_[warp].calls[lane].mask)) {
            break;
        }
    }
}

// Lets all threads at the barrier go on, in the other order than last time.
void Runner::release_barrier() {
    uint64_t yes = 0;
    for (const Thread& thread : threads_) {
        yes += thread.state == State::AtBarrier && thread.predicate;
    }
    const uint64_t result = yes | static_cast<uint64_t>(waiting_) << 32;
    waiting_ = 0;
    backwards_ = !backwards_;
    for (unsigned i = 0; i < count_; ++i) {
        const unsigned thread = backwards_ ? i : count_ - 1 - i;
        if (threads_[thread].state == State::AtBarrier) {
            threads_[thread].result = result;
            threads_[thread].state = State::Running;
            wake(thread);
        }
    }
}

unsigned Runner::barrier(bool predicate, int line, unsigned* count) {
    const unsigned self = current_;
    threads_[self].predicate = predicate;
    threads_[self].state = State::AtBarrier;
    if (waiting_ > 0 && line != barrier_line_) {
        fail(CUDA_ERROR_LAUNCH_FAILED, "the barrier in line " + std::to_string(line) +
                                           " is reached while other threads wait at the one in line " +
                                           std::to_string(barrier_line_));
    }
    barrier_line_ = line;
    if (++waiting_ == live_) {
        release_barrier();
    }
    suspend();
    *count = static_cast<unsigned>(threads_[self].result >> 32);
    return static_cast<unsigned>(threads_[self].result);
}

// Completes the warp operation with this mask if all live lanes of the mask have come.
inline bool Runner::try_warp(unsigned warp, unsigned mask) {
    WarpState& state = warps_[warp];
    const unsigned needed = mask & state.live;
    if ((state.waiting & needed) != needed || needed == 0) {
        return false;
    }
    const std::string problem = warp_disagreement(state, needed);
    if (!problem.empty()) {
        fail(CUDA_ERROR_LAUNCH_FAILED, problem);
    }
    warp_results(state, needed);
    state.waiting &= ~needed;
    state.backwards = !state.backwards;
    for (unsigned i = 0; i < WARP; ++i) {
        const unsigned lane = state.backwards ? i : WARP - 1 - i;
        if ((needed >> lane & 1) != 0) {
            wake(warp * WARP + lane);
        }
    }
    return true;
}

inline uint64_t Runner::warp(const WarpCall& call) {
    const unsigned lane = current_ % WARP;
    WarpState& state = warps_[current_ / WARP];
    if ((call.mask >> lane & 1) == 0) {
        fail(CUDA_ERROR_LAUNCH_FAILED, "a warp operation in line " + std::to_string(call.line) +
                                           " is run by a lane that its mask leaves out");
    }
    state.calls[lane] = call;
    state.waiting |= 1u << lane;
    try_warp(current_ / WARP, call.mask);
    suspend();
    return state.results[lane];
}

void Runner::fail(CUresult code, const std::string& what) {
    report("%s: %s", place(current_).c_str(), what.c_str());
    failure_ = code;
    switch_fiber(*running_, scheduler_);
    __builtin_unreachable();
}

CUresult Runner::diverged() {
    unsigned at_barrier = 0;
    unsigned in_warp = 0;
    int warp_line = 0;
    unsigned first = 0;
    for (unsigned i = count_; i-- > 0;) {
        at_barrier += threads_[i].state == State::AtBarrier;
        if ((warps_[i / WARP].waiting >> i % WARP & 1) != 0) {
            ++in_warp;
            warp_line = warps_[i / WARP].calls[i % WARP].line;
            first = i;
        }
    }
    report("%s: the threads diverge: %u of %u live threads wait at the barrier in line %d, %u in a warp operation "
           "(line %d) whose other lanes never come",
           place(first).c_str(), at_barrier, live_, at_barrier > 0 ? barrier_line_ : 0, in_warp, warp_line);
    return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult Runner::check_dynamic_shared() const {
    const unsigned char* end = launch_.module->code->dynamic_shared + launch_.shared;
    for (size_t i = 0; i < SHARED_GUARD; ++i) {
        if (end[i] != SHARED_GUARD_BYTE) {
            report("%s: wrote %zu bytes behind the %u bytes of dynamic shared memory", place(0).c_str(), i, launch_.shared);
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
    }
    return CUDA_SUCCESS;
}

// The error for a signal in a kernel.
CUresult Runner::faulted() {
    const std::string where = place(current_);
    if (fault_.number == SIGFPE) {
        report("%s: integer division by zero", where.c_str());
        return CUDA_ERROR_LAUNCH_FAILED;
    }
    if (fault_.number == SIGILL) {
        report("%s: illegal instruction (a trap of the compiler: undefined behaviour)", where.c_str());
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    }
    if (fault_.number == TIMEOUT_SIGNAL) {
        report("%s: the launch takes longer than FAKE_CUDA_TIMEOUT", where.c_str());
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    report("%s: illegal address %s", where.c_str(), describe(fault_.address).c_str());
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

unsigned runtime_barrier(int predicate, int line, unsigned* threads) {
    return active->barrier(predicate != 0, line, threads);
}
unsigned long long runtime_warp(int kind, unsigned mask, unsigned long long value, int argument, int width, int line) {
    return active->warp({kind, mask, value, argument, width, line});
}
// Threads run one at a time, so that each is converged with itself only, as the language allows.
unsigned runtime_active_mask() { return 1u << active->lane(); }
void runtime_fail(int code, const char* what, const char* file, int line) {
    active->fail(code, std::string(what) + " at " + file + ":" + std::to_string(line));
}

}  // namespace

const fake_cuda::Runtime& kernel_runtime() {
    static const fake_cuda::Runtime runtime = {runtime_barrier, runtime_warp, runtime_active_mask, runtime_fail};
    return runtime;
}

CUresult run_launch(const Launch& launch, void** arguments) {
    const std::lock_guard<std::mutex> guard(launch.module->running);
    Runner runner(launch, arguments);
    active = &runner;
    CUresult result;
    if (sigsetjmp(runner.fault_frame().env, 1) == 0) {
        set_fault_frame(&runner.fault_frame(), static_cast<unsigned>(setting_number("TIMEOUT", 300)));
        result = runner.run();
    } else {
        result = runner.faulted();
    }
    set_fault_frame(nullptr, 0);
    active = nullptr;
    return result;
}

}  // namespace fake
