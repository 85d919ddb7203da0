// See fault.h. Handlers are installed at the first launch and pass on what is not a kernel's to those before them.

#include "fault.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <mutex>

#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace fake {

const int TIMEOUT_SIGNAL = SIGVTALRM;

namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM};
constexpr size_t COUNT = sizeof SIGNALS / sizeof *SIGNALS;
constexpr size_t SIGNAL_STACK = 64 * 1024;

struct sigaction earlier[COUNT];
thread_local FaultFrame* frame = nullptr;
thread_local void* signal_stack = nullptr;
thread_local timer_t timer;
thread_local bool has_timer = false;

void pass_on(int number, siginfo_t* info, void* context) {
    for (size_t i = 0; i < COUNT; ++i) {
        if (SIGNALS[i] != number) {
            continue;
        }
        if ((earlier[i].sa_flags & SA_SIGINFO) != 0) {
            earlier[i].sa_sigaction(number, info, context);
        } else if (earlier[i].sa_handler == SIG_DFL || earlier[i].sa_handler == SIG_IGN) {
            // The instruction is run again, and ends the process this time.
            std::signal(number, SIG_DFL);
        } else {
            earlier[i].sa_handler(number);
        }
    }
}

void handle(int number, siginfo_t* info, void* context) {
    FaultFrame* target = frame;
    if (target == nullptr) {
        if (number == TIMEOUT_SIGNAL && info->si_code == SI_TIMER) {
            return;  // the launch ended just now
        }
        pass_on(number, info, context);
        return;
    }
    frame = nullptr;
    target->number = number;
    target->address = reinterpret_cast<uint64_t>(info->si_addr);
    siglongjmp(target->env, 1);
}

void install() {
    for (size_t i = 0; i < COUNT; ++i) {
        struct sigaction action = {};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        sigaction(SIGNALS[i], &action, &earlier[i]);
    }
}

// A timer of this thread's processor time.
void make_timer() {
    struct sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = TIMEOUT_SIGNAL;
    event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    has_timer = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
}

void arm(unsigned seconds) {
    struct itimerspec when = {};
    when.it_value.tv_sec = seconds;
    timer_settime(timer, 0, &when, nullptr);
}

}  // namespace

void prepare_kernel_thread() {
    static std::once_flag& once = *new std::once_flag;
    std::call_once(once, install);
    make_timer();
    signal_stack = mmap(nullptr, SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (signal_stack == MAP_FAILED) {
        signal_stack = nullptr;
        return;
    }
    stack_t stack = {};
    stack.ss_sp = signal_stack;
    stack.ss_size = SIGNAL_STACK;
    sigaltstack(&stack, nullptr);
}

void release_kernel_thread() {
    if (has_timer) {
        timer_delete(timer);
    }
    if (signal_stack != nullptr) {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        munmap(signal_stack, SIGNAL_STACK);
        signal_stack = nullptr;
    }
}

void set_fault_frame(FaultFrame* target, unsigned seconds) {
    frame = target;
    if (has_timer) {
        arm(target != nullptr ? seconds : 0);
    }
}

}  // namespace fake
