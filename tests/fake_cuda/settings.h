// What a test orders from the fake, and what the fake writes down for it.
#pragma once

#include <cstdint>
#include <string>

#include "types.h"

namespace fake {

// A setting FAKE_CUDA_<name>: what fake_cuda_set gave, else the environment's value, else `standard`.
std::string setting(const char* name, const char* standard);
long long setting_number(const char* name, long long standard);

// The result ordered for this call of `function`, counted here; CUDA_SUCCESS where none is.
CUresult ordered_failure(const char* function);
// The result ordered for the command that this call submits (FAKE_CUDA_FAIL_LATER).
CUresult ordered_late_failure(const char* function);

// Whether a result stays with the context for good, as the real driver's errors of execution do.
bool is_sticky(CUresult error);

// One line to the log. The format is printf's.
void log(const char* format, ...) __attribute__((format(printf, 1, 2)));
// A line `call FUNCTION` where FAKE_CUDA_CALLS asks for it.
void note_call(const char* function);
// One line to stderr: something that a test must look at.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));

// How long each command takes at least.
uint64_t slow_nanoseconds();

}  // namespace fake
