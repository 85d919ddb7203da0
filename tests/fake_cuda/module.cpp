// Modules: each load is a copy of the kernel file of its own, with its own variables.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "block.h"
#include "capture.h"
#include "image.h"
#include "memory.h"
#include "settings.h"

namespace fake {

Module::~Module() {
    for (const auto& global : globals) {
        remove_module_range(global.second.begin);
    }
    if (library != nullptr) {
        dlclose(library);
        close(descriptor);
    }
}

namespace {

// Loads the library from a file that exists in memory only. The descriptor stays open as long as the module does: the
// loader takes a path that it has seen for the library that it loaded from there.
void* load_library(const std::string& bytes, int& descriptor) {
    const int file = memfd_create("fake-cuda-module", MFD_CLOEXEC);
    if (file < 0) {
        report("no anonymous file for a module: %s", std::strerror(errno));
        return nullptr;
    }
    size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
        if (count <= 0) {
            close(file);
            return nullptr;
        }
        done += static_cast<size_t>(count);
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        report("cannot load a module: %s", dlerror());
        close(file);
        return nullptr;
    }
    descriptor = file;
    return library;
}

// The bytes of shared memory that a kernel declares itself: variables of a function `name` with C linkage.
size_t shared_of(const Symbols& symbols, const char* name) {
    const std::string prefix = "_ZZ" + std::to_string(std::strlen(name)) + name + "E";
    size_t bytes = 0;
    for (const LocalVariable& variable : symbols.locals) {
        if (variable.name.compare(0, prefix.size(), prefix) == 0) {
            bytes += variable.size;
        }
    }
    return bytes;
}

void add_functions(const std::shared_ptr<Module>& module, const Symbols& symbols) {
    for (unsigned i = 0; i < module->code->entry_count; ++i) {
        auto function = std::make_shared<Function>();
        function->module = module;
        function->entry = module->code->entries[i];
        function->static_shared = shared_of(symbols, function->entry->name);
        module->functions[function->entry->name] = function;
    }
}

void add_variables(const std::shared_ptr<Module>& module, const Symbols& symbols) {
    Dl_info info = {};
    dladdr(module->code, &info);
    auto* base = static_cast<unsigned char*>(info.dli_fbase);
    for (const LocalVariable& variable : symbols.locals) {
        module->shared.push_back({base + variable.offset, variable.size});
    }
    for (const auto& [name, size] : symbols.globals) {
        void* address = dlsym(module->library, name.c_str());
        if (address != nullptr && name != "fake_cuda_module") {
            module->globals[name] = {static_cast<unsigned char*>(address), size};
            add_module_range(*module->context, address, size);
        }
    }
}

// A kernel's machine code runs on devices of its major version and at least its minor one; text on all newer devices.
bool fits(const Image& image, const Device& device) {
    const int own = device.major * 10 + device.minor;
    return image.architecture <= own && (!image.machine_code || image.architecture / 10 == device.major);
}

CUresult load(const Call& call, CUmodule* out, const void* data) {
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    if (out == nullptr || data == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult result = forbid_while_capturing()) {
        return result;
    }
    Image image;
    if (const CUresult result = read_image(data, image)) {
        return result;
    }
    if (!fits(image, *call.context->device)) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    auto module = std::make_shared<Module>();
    module->context = call.context;
    module->library = load_library(image.library, module->descriptor);
    if (module->library == nullptr) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    module->code = static_cast<const fake_cuda::Module*>(dlsym(module->library, "fake_cuda_module"));
    if (module->code == nullptr || module->code->abi != fake_cuda::ABI_VERSION) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *module->code->runtime = &kernel_runtime();
    const Symbols symbols = read_symbols(image.library);
    add_functions(module, symbols);
    add_variables(module, symbols);
    for (const auto& function : module->functions) {
        functions().add(function.second);
    }
    modules().add(module);
    log("module_load kernels=%u", module->code->entry_count);
    *out = reinterpret_cast<CUmodule>(module.get());
    return CUDA_SUCCESS;
}

}  // namespace

}  // namespace fake

using fake::Call;

FAKE_API cuModuleLoadData(CUmodule* out, const void* data) { return fake::load(Call(__func__), out, data); }

FAKE_API cuModuleLoadDataEx(CUmodule* out, const void* data, unsigned count, int* options, void** values) {
    Call call(__func__);
    if (call.error == CUDA_SUCCESS && count > 0 && (options == nullptr || values == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return fake::load(call, out, data);
}

FAKE_API cuModuleUnload(CUmodule handle) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto module = fake::modules().take(handle);
    if (module == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const auto& function : module->functions) {
        fake::functions().take(function.second.get());
    }
    fake::log("module_unload");
    return CUDA_SUCCESS;
}

FAKE_API cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto module = fake::modules().find(handle);
    if (out == nullptr || name == nullptr || module == nullptr) {
        return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = reinterpret_cast<CUfunction>(found->second.get());
    return CUDA_SUCCESS;
}

FAKE_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule handle, const char* name) {
    Call call(__func__);
    if (call.error != CUDA_SUCCESS) {
        return call.error;
    }
    const auto module = fake::modules().find(handle);
    if (name == nullptr || module == nullptr) {
        return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    }
    const auto found = module->globals.find(name);
    if (found == module->globals.end()) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (address != nullptr) {
        *address = reinterpret_cast<CUdeviceptr>(found->second.begin);
    }
    if (size != nullptr) {
        *size = found->second.size;
    }
    return CUDA_SUCCESS;
}

FAKE_API cuModuleGetLoadingMode(int* mode) {
    Call call(__func__, fake::Needs::Init);
    if (call.error != CUDA_SUCCESS || mode == nullptr) {
        return call.error != CUDA_SUCCESS ? call.error : CUDA_ERROR_INVALID_VALUE;
    }
    *mode = 1;  // eager
    return CUDA_SUCCESS;
}
