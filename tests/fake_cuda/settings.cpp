// See settings.h. Settings are read when they are needed, so that a test may change them between two calls.

#include "settings.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "state.h"

namespace fake {

namespace {

struct Order {
    std::string function;
    uint64_t call;
    CUresult result;
};

struct Orders {
    std::string text;  // what `list` was read from
    std::vector<Order> list;
    std::map<std::string, uint64_t> calls;
};

struct State {
    std::mutex mutex;
    std::map<std::string, std::string> values;
    Orders now;
    Orders later;
    std::mutex log_mutex;
    std::string log;
    bool has_reader = false;  // somebody has taken the log: from then on it is kept in memory
    std::string log_path;
    std::FILE* log_file = nullptr;
};

State& state() {
    static State& state = *new State;
    return state;
}

// Set by fake_cuda_set and once from the environment; commands read it without the lock.
std::atomic<int64_t> slow{-1};
// As `slow`: whether each call is a line of the log.
std::atomic<int> calls{-1};

// The log kept in memory is cut at this size, so that a long run without a reader does not grow.
constexpr size_t LOG_LIMIT = 16u << 20;

std::string without_version(const std::string& name) {
    const size_t at = name.rfind("_v");
    const bool versioned = at != std::string::npos && name.find_first_not_of("0123456789", at + 2) == std::string::npos;
    return versioned ? name.substr(0, at) : name;
}

std::string value_locked(const std::string& name, const char* standard) {
    const auto found = state().values.find(name);
    if (found != state().values.end()) {
        return found->second;
    }
    const char* value = std::getenv(("FAKE_CUDA_" + name).c_str());
    return value != nullptr ? value : standard;
}

// Reads "function:call:result;...".
std::vector<Order> parse(const std::string& text) {
    std::vector<Order> list;
    size_t at = 0;
    while (at < text.size()) {
        const size_t end = std::min(text.find(';', at), text.size());
        const std::string item = text.substr(at, end - at);
        const size_t first = item.find(':');
        const size_t second = first == std::string::npos ? first : item.find(':', first + 1);
        at = end + 1;
        if (item.empty()) {
            continue;
        }
        if (second == std::string::npos) {
            report("order '%s' is not function:call:result", item.c_str());
            continue;
        }
        list.push_back({without_version(item.substr(0, first)), std::strtoull(item.c_str() + first + 1, nullptr, 10),
                        std::atoi(item.c_str() + second + 1)});
    }
    return list;
}

CUresult take(Orders& orders, const char* setting, const char* function) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const std::string text = value_locked(setting, "");
    if (text != orders.text) {
        orders = {text, parse(text), {}};
    }
    if (orders.list.empty()) {
        return CUDA_SUCCESS;
    }
    const std::string name = without_version(function);
    const uint64_t call = ++orders.calls[name];
    for (const Order& order : orders.list) {
        if (order.call == call && order.function == name) {
            return order.result;
        }
    }
    return CUDA_SUCCESS;
}

void append(const std::string& line) {
    State& s = state();
    const std::string path = setting("LOG", "");
    const std::lock_guard<std::mutex> guard(s.log_mutex);
    if (s.log.size() > LOG_LIMIT) {
        s.log.erase(0, s.log.find('\n', LOG_LIMIT / 2) + 1);
    }
    if (s.has_reader) {
        s.log += line;
    }
    if (path != s.log_path) {
        if (s.log_file != nullptr) {
            std::fclose(s.log_file);
        }
        s.log_file = path.empty() ? nullptr : std::fopen(path.c_str(), "a");
        s.log_path = path;
    }
    if (s.log_file != nullptr) {
        std::fwrite(line.data(), 1, line.size(), s.log_file);
        std::fflush(s.log_file);
    }
}

std::string format_line(const char* prefix, const char* format, va_list list) {
    char text[1024];
    std::vsnprintf(text, sizeof text, format, list);
    return std::string(prefix) + text + "\n";
}

}  // namespace

std::string setting(const char* name, const char* standard) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    return value_locked(name, standard);
}

long long setting_number(const char* name, long long standard) {
    const std::string text = setting(name, "");
    return text.empty() ? standard : std::strtoll(text.c_str(), nullptr, 0);
}

CUresult ordered_failure(const char* function) { return take(state().now, "FAIL", function); }
CUresult ordered_late_failure(const char* function) { return take(state().later, "FAIL_LATER", function); }

bool is_sticky(CUresult error) {
    switch (error) {
        case 214:  // ECC_UNCORRECTABLE
        case 220:  // NVLINK_UNCORRECTABLE
        case 226:  // CONTAINED
        case 721:  // TENSOR_MEMORY_LEAK
        case 810:  // MPS_CLIENT_TERMINATED
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
            return true;
        default:
            return false;
    }
}

void note_call(const char* function) {
    int noted = calls.load(std::memory_order_relaxed);
    if (noted < 0) {
        noted = setting_number("CALLS", 0) != 0;
        calls.store(noted, std::memory_order_relaxed);
    }
    if (noted != 0) {
        log("call %s", function);
    }
}

uint64_t slow_nanoseconds() {
    int64_t value = slow.load(std::memory_order_relaxed);
    if (value < 0) {
        value = setting_number("SLOW_NS", 0);
        slow.store(value, std::memory_order_relaxed);
    }
    return static_cast<uint64_t>(value);
}

void log(const char* format, ...) {
    va_list list;
    va_start(list, format);
    append(format_line("", format, list));
    va_end(list);
}

void report(const char* format, ...) {
    va_list list;
    va_start(list, format);
    const std::string line = format_line("fake cuda: ", format, list);
    va_end(list);
    std::fwrite(line.data(), 1, line.size(), stderr);
    append(line);
}

}  // namespace fake

// Sets FAKE_CUDA_<name> (the prefix may be given) for this process; a null value gives it back to the environment.
FAKE_EXPORT void fake_cuda_set(const char* name, const char* value) {
    if (name == nullptr) {
        return;
    }
    const std::string key = std::strncmp(name, "FAKE_CUDA_", 10) == 0 ? name + 10 : name;
    const std::lock_guard<std::mutex> guard(fake::state().mutex);
    if (value != nullptr) {
        fake::state().values[key] = value;
    } else {
        fake::state().values.erase(key);
    }
    // The same order given again counts anew.
    fake::state().now = fake::Orders();
    fake::state().later = fake::Orders();
    fake::slow.store(-1, std::memory_order_relaxed);
    fake::calls.store(-1, std::memory_order_relaxed);
}

// For the fakes of libraries: what FAKE_CUDA_<name> says, copied as far as it fits, with a final NUL; empty where it says
// nothing.
FAKE_EXPORT void fake_cuda_get(const char* name, char* buffer, size_t length) {
    const std::string text = fake::setting(name, "");
    std::snprintf(buffer, length, "%s", text.c_str());
}

// For the fakes of libraries: a line for the log.
FAKE_EXPORT void fake_cuda_note(const char* line) { fake::log("%s", line); }

// Copies as much of the log as fits, with a final NUL, and returns the size needed. The log is emptied where it fits.
FAKE_EXPORT size_t fake_cuda_log_take(char* buffer, size_t length) {
    fake::State& s = fake::state();
    const std::lock_guard<std::mutex> guard(s.log_mutex);
    s.has_reader = true;
    const size_t needed = s.log.size() + 1;
    if (buffer != nullptr && length > 0) {
        const size_t count = std::min(length, needed) - 1;
        std::memcpy(buffer, s.log.data(), count);
        buffer[count] = 0;
        if (length >= needed) {
            s.log.clear();
        }
    }
    return needed;
}

// Forgets settings, counts, the log and the contexts' sticky errors. Memory, streams and modules stay.
FAKE_EXPORT void fake_cuda_reset() {
    {
        fake::State& s = fake::state();
        const std::lock_guard<std::mutex> guard(s.mutex);
        s.values.clear();
        s.now = fake::Orders();
        s.later = fake::Orders();
    }
    {
        fake::State& s = fake::state();
        const std::lock_guard<std::mutex> guard(s.log_mutex);
        s.log.clear();
    }
    fake::slow.store(-1, std::memory_order_relaxed);
    fake::calls.store(-1, std::memory_order_relaxed);
    fake::forget_errors();
}
