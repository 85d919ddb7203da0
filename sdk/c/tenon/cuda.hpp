// tenon/cuda.hpp - kernels in CUDA C++ for devices of type CUDA, which another plugin brings.
//
// nvcc makes a fatbin of the device code; the plugin carries it, loads it into the context of the device, and enqueues
// its kernels on the stream of the call:
//
//     TENON_CUDA_CODE(code, "kernels.fatbin");
//
//     struct Twice {
//         tenon::cuda::Module module{ code };
//
//         void compute(tenon::Call &call) const
//         {
//             const auto x = call.input<float>(0);
//             const auto y = call.output_like<float>(0, x);
//             module.launch(call, "twice", tenon::cuda::each(x.size()), y.data(), x.data(), x.size());
//         }
//     };
//
// for `extern "C" __global__ void twice(float *y, const float *x, unsigned long long n)`. Nothing of CUDA is needed to
// compile this, and the library loads on machines without a GPU: the driver is looked for by the first call. The data
// of a tensor on the device is an address of the device; the host keeps it until the stream has passed what was
// enqueued. A kernel waits for nothing, and does the same for the same shapes and attributes: sdk/docs/cuda.md.
#ifndef TENON_CUDA_HPP
#define TENON_CUDA_HPP

// Of other libraries, and so visible, whether tenon.hpp was included before or not.
#pragma GCC visibility push(default)
#include <dlfcn.h>

#include <map>
#pragma GCC visibility pop

#include "../tenon.hpp"

// Defines `id`, the bytes of a file with device code, which is looked for where the compiler runs and in the folders
// of -Wa,-I. At global scope.
#define TENON_CUDA_CODE(id, file) \
    __asm__(".pushsection .rodata\n.balign 16\n" #id ":\n.incbin \"" file "\"\n.byte 0\n.popsection\n"); \
    extern "C" __attribute__((visibility("hidden"))) const unsigned char id[]

namespace tenon TENON_OWN {
namespace cuda {

// Blocks of a grid and threads of a block, in each direction, and bytes of dynamic shared memory of a block.
struct Grid {
    uint32_t blocks[3] = { 1, 1, 1 };
    uint32_t threads[3] = { 1, 1, 1 };
    uint32_t shared_bytes = 0;
};

// A grid with a thread for each of so many elements.
inline Grid each(uint64_t elements, uint32_t threads = 256)
{
    const uint64_t blocks = elements / threads + (elements % threads != 0);
    if (blocks > INT32_MAX) {
        throw invalid_argument("%" PRIu64 " elements are too many for a grid", elements);
    }
    return Grid{ { static_cast<uint32_t>(blocks), 1, 1 }, { threads, 1, 1 }, 0 };
}

// The entries of the driver that are called here. Its handles are pointers, its results numbers: 0 is success.
class Driver {
public:
    int (*set_current)(void *context);
    int (*load)(void **module, const void *image);
    int (*unload)(void *module);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                  void *stream, void **arguments, void **extra);
    int (*name_of)(int result, const char **text);
    int (*words_of)(int result, const char **text);

    // Opened once. The device's plugin may have found the library elsewhere: then it is open already.
    static const Driver &get()
    {
        static const Driver driver;
        return driver;
    }
    // Throws an error of the driver in its own words.
    void require(const char *call, int result) const
    {
        if (result != 0) {
            constexpr int out_of_memory = 2;
            const char *name = nullptr;
            const char *words = nullptr;
            name_of(result, &name);
            words_of(result, &words);
            throw Error(result == out_of_memory ? TENON_RESOURCE_EXHAUSTED : TENON_INTERNAL,
                        detail::text("%s: %s: %s", call, name != nullptr ? name : "an unknown result",
                                     words != nullptr ? words : ""));
        }
    }

private:
    Driver()
    {
        void *library = nullptr;
        for (const int flags : { RTLD_NOW | RTLD_NOLOAD, RTLD_NOW }) {
            for (const char *name : { "libcuda.so.1", "libcuda.so" }) {
                library = library != nullptr ? library : dlopen(name, flags);
            }
        }
        if (library == nullptr) {
            throw unavailable("there is no libcuda.so, which this kernel needs: install NVIDIA's driver");
        }
        entry(library, "cuCtxSetCurrent", set_current);
        entry(library, "cuModuleLoadData", load);
        entry(library, "cuModuleUnload", unload);
        entry(library, "cuModuleGetFunction", find);
        entry(library, "cuLaunchKernel", launch);
        entry(library, "cuGetErrorName", name_of);
        entry(library, "cuGetErrorString", words_of);
    }
    template <class F> static void entry(void *library, const char *name, F &function)
    {
        void *found = dlsym(library, name);
        if (found == nullptr) {
            throw unavailable("libcuda.so has no %s: install a driver of CUDA 12.0 or later", name);
        }
        memcpy(&function, &found, sizeof function);
    }
};

// Device code that is loaded into a context.
class Loaded {
public:
    Loaded(void *context, const void *image) : context_(context)
    {
        enter();
        Driver::get().require("cuModuleLoadData", Driver::get().load(&module_, image));
    }
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;
    // Nothing of it runs: steps are over before their kernels go.
    ~Loaded()
    {
        if (Driver::get().set_current(context_) == 0) {
            Driver::get().unload(module_);
        }
    }
    void *context() const { return context_; }
    // Makes the context that of this thread: calls come from any.
    void enter() const { Driver::get().require("cuCtxSetCurrent", Driver::get().set_current(context_)); }
    void *function(const char *name)
    {
        const std::lock_guard<std::mutex> held(lock_);
        void *&function = functions_[name];
        if (function == nullptr) {
            Driver::get().require(name, Driver::get().find(&function, module_, name));
        }
        return function;
    }

    // That of a context: all kernels share it, and it goes with the last of them. A context that was closed may come
    // back under its address without it.
    static std::shared_ptr<Loaded> of(void *context, const void *image)
    {
        // Never destroyed: kernels may go after the objects of a process that ends.
        static auto &lock = *new std::mutex;
        static auto &all = *new std::map<std::pair<void *, const void *>, std::weak_ptr<Loaded>>;
        const std::lock_guard<std::mutex> held(lock);
        std::weak_ptr<Loaded> &place = all[{ context, image }];
        std::shared_ptr<Loaded> loaded = place.lock();
        if (loaded == nullptr) {
            loaded = std::make_shared<Loaded>(context, image);
            place = loaded;
        }
        return loaded;
    }

private:
    void *context_;
    void *module_ = nullptr;
    std::mutex lock_;
    std::map<std::string, void *, std::less<>> functions_;
};

// The device code of a kernel object: loaded by its first call, and kept as long as the object lives.
class Module {
public:
    explicit Module(const unsigned char *image) : image_(image) {}

    // Enqueues `kernel` on the stream of the call. Each argument is copied, and is of the type that the kernel has in
    // its place: a tensor's data is a pointer. A grid without blocks is nothing to do.
    template <class... A> void launch(const Call &call, const char *kernel, const Grid &grid, A... arguments) const
    {
        static_assert((std::is_trivially_copyable_v<A> && ...), "the driver copies the bytes of arguments");
        const Native native = call.native();
        if (native.api != "cuda") {
            throw unimplemented("expected a device that is driven by cuda, found one that is driven by %s",
                                std::string(native.api).c_str());
        }
        if (grid.blocks[0] == 0 || grid.blocks[1] == 0 || grid.blocks[2] == 0) {
            return;
        }
        const std::shared_ptr<Loaded> loaded = of(native.device);
        loaded->enter();
        void *pointers[] = { static_cast<void *>(&arguments)..., nullptr };
        Driver::get().require(
            "cuLaunchKernel",
            Driver::get().launch(loaded->function(kernel), grid.blocks[0], grid.blocks[1], grid.blocks[2],
                                 grid.threads[0], grid.threads[1], grid.threads[2], grid.shared_bytes, native.stream,
                                 pointers, nullptr));
    }

private:
    std::shared_ptr<Loaded> of(void *context) const
    {
        const std::lock_guard<std::mutex> held(lock_);
        if (loaded_ == nullptr || loaded_->context() != context) {
            loaded_ = Loaded::of(context, image_);
        }
        return loaded_;
    }

    const unsigned char *image_;
    mutable std::mutex lock_;
    mutable std::shared_ptr<Loaded> loaded_;
};

} // namespace cuda
} // namespace tenon

#endif // TENON_CUDA_HPP
