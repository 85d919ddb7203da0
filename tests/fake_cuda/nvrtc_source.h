// Finding the kernels in preprocessed CUDA C, and turning it into C++ that an ordinary compiler takes.
#pragma once

#include <string>
#include <vector>

namespace fake_nvrtc {

// A kernel that gets an entry in the compiled file.
struct Kernel {
    std::string name;        // the name that cuModuleGetFunction takes
    std::string expression;  // what names the function in C++
    std::string bounds;      // the first argument of __launch_bounds__, or empty
};

// The text with `extern __shared__` arrays turned into pointers to the dynamic shared memory, and the kernels with
// C linkage that it defines.
struct Source {
    std::string text;
    std::vector<Kernel> kernels;
};

Source scan(const std::string& preprocessed);

// What is put before and behind the text of `scan` to make a kernel file of it.
std::string prologue();
std::string epilogue(const std::vector<Kernel>& kernels);

}  // namespace fake_nvrtc
