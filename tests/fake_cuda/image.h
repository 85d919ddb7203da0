// Kernel files as the fake compiler hands them out.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "types.h"

namespace fake {

struct Image {
    std::string library;  // an ELF shared library
    int architecture = 0;
    bool machine_code = false;
};

// Reads an image of cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE where the fake compiler did not make it.
CUresult read_image(const void* data, Image& image);

// A variable of a function in a library: offset from where the library is loaded, and mangled name.
struct LocalVariable {
    std::string name;
    size_t offset;
    size_t size;
};

// The writable variables that live in functions, which is what `__shared__` has become, and the sizes of all global
// ones by name.
struct Symbols {
    std::vector<LocalVariable> locals;
    std::map<std::string, size_t> globals;
};
Symbols read_symbols(const std::string& library);

}  // namespace fake
