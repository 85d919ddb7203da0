// A libcublasLt.so for tests: what plugins/cuda calls of the library, with its checks of arguments, on the fake driver.
//
// Products are enqueued on the stream as host functions, so that they keep their place among its commands; device memory
// is host memory here. Algorithms are bound to the problem that they were given for, to the alignment and to the
// workspace that they asked for: one that is used otherwise is refused. What the library has beyond this is absent.
//
// FAKE_CUDA_CUBLASLT_REFUSES is a list of numbers of cudaDataType_t, each between commas, for which there is no
// algorithm, FAKE_CUDA_CUBLASLT_LACKS one of cublasLtEpilogue_t; FAKE_CUDA_CUBLASLT_SLOW the number of an algorithm that
// takes fifty milliseconds. Each product is a line of the log.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "cublaslt_types.h"

#define FAKE_CUBLASLT extern "C" __attribute__((visibility("default"))) int

// Of the fake driver.
extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);
extern "C" int cuStreamIsCapturing(void* stream, int* status);
extern "C" int cuCtxGetCurrent(void** context);
extern "C" void fake_cuda_get(const char* name, char* buffer, size_t length);
extern "C" void fake_cuda_note(const char* line);

using namespace fake_cublaslt;

namespace {

constexpr uint64_t HANDLE_MARK = 0x6c7468616e646c65;

struct Handle {
    uint64_t mark;
    void* context;
};

template <class T>
int create(T** place, T value) {
    if (place == nullptr) return INVALID_VALUE;
    *place = new (std::nothrow) T(value);
    return *place == nullptr ? ALLOC_FAILED : SUCCESS;
}

template <class T>
int set(T& to, const void* from, size_t bytes) {
    if (from == nullptr || bytes != sizeof(T)) return INVALID_VALUE;
    memcpy(&to, from, sizeof(T));
    return SUCCESS;
}

bool is_known(int type) { return type == R_32F || type == R_64F || type == R_16F || type == R_16BF; }

// FNV-1a over what an algorithm depends on; the vector's address is not part of it.
uint64_t problem_of(const Desc& desc, const Layout* const (&layouts)[4]) {
    uint64_t hash = 14695981039346656037ull;
    const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
    for (const int value : {desc.compute, desc.scale, desc.transa, desc.transb, static_cast<int>(desc.epilogue)}) {
        mix(static_cast<uint64_t>(value));
    }
    for (const Layout* layout : layouts) {
        mix(static_cast<uint64_t>(layout->type));
        mix(layout->rows);
        mix(layout->columns);
        mix(static_cast<uint64_t>(layout->ld));
        mix(static_cast<uint64_t>(layout->batch_count));
        mix(static_cast<uint64_t>(layout->batch_stride));
    }
    return hash;
}

// Whether a test has put a number on one of its lists.
bool is_listed(const char* name, unsigned number) {
    char list[64], wanted[16];
    fake_cuda_get(name, list, sizeof(list));
    snprintf(wanted, sizeof(wanted), ",%u,", number);
    return strstr(list, wanted) != nullptr;
}

// Whether types go together: those of the table of cublasLtMatmul that the plugin uses.
bool types_fit(const Desc& desc, const Layout* const (&layouts)[4]) {
    const int type = layouts[0]->type;
    for (const Layout* layout : layouts) {
        if (layout->type != type) return false;
    }
    const bool is_double = desc.compute == COMPUTE_64F;
    if (desc.compute == COMPUTE_32F_FAST_TF32 && type != R_32F) return false;
    if (is_double && desc.epilogue != EPILOGUE_DEFAULT) return false;
    if (is_listed("CUBLASLT_REFUSES", static_cast<unsigned>(type))) return false;
    if (is_listed("CUBLASLT_LACKS", desc.epilogue)) return false;
    return is_double == (type == R_64F) && desc.scale == (is_double ? R_64F : R_32F);
}

bool sizes_fit(const Desc& desc, const Layout* const (&layouts)[4]) {
    const Layout &a = *layouts[0], &b = *layouts[1], &c = *layouts[2], &d = *layouts[3];
    const bool at = desc.transa == OP_T, bt = desc.transb == OP_T;
    for (const Layout* layout : layouts) {
        if (layout->batch_count != d.batch_count) return false;
    }
    return c.rows == d.rows && c.columns == d.columns && (at ? a.columns : a.rows) == d.rows &&
           (bt ? b.rows : b.columns) == d.columns && (at ? a.rows : a.columns) == (bt ? b.columns : b.rows);
}

// The alignment of the vector is taken from its address.
uint64_t bias_alignment(const Desc& desc) {
    const bool has = desc.epilogue & EPILOGUE_BIAS;
    const uint64_t lowest = desc.bias & -desc.bias;
    return !has || lowest == 0 || lowest > 16 ? 16 : lowest;
}

uint64_t milliseconds_of(uint64_t number) {
    char slow[16];
    fake_cuda_get("CUBLASLT_SLOW", slow, sizeof(slow));
    return strtoull(slow, nullptr, 10) == number ? 50 : 0;
}

bool is_aligned(const void* address, uint64_t bytes) { return reinterpret_cast<uintptr_t>(address) % bytes == 0; }

struct Ordered {
    Product product;
    bool stays;  // recorded in a graph, which may run it again
};

void run(void* data) {
    auto* ordered = static_cast<Ordered*>(data);
    multiply(ordered->product);
    if (!ordered->stays) delete ordered;
}

int enqueue(const Product& product, void* stream) {
    int capturing = 0;
    if (cuStreamIsCapturing(stream, &capturing) != 0) return EXECUTION_FAILED;
    auto* ordered = new (std::nothrow) Ordered{product, capturing != 0};
    if (ordered == nullptr) return ALLOC_FAILED;
    if (ordered->stays) {
        static std::mutex mutex;
        static std::deque<Ordered*> kept;
        const std::lock_guard<std::mutex> guard(mutex);
        kept.push_back(ordered);
    }
    if (cuLaunchHostFunc(stream, run, ordered) == 0) return SUCCESS;
    if (!ordered->stays) delete ordered;
    return EXECUTION_FAILED;
}

bool is_handle(const Handle* handle) { return handle != nullptr && handle->mark == HANDLE_MARK; }

}  // namespace

FAKE_CUBLASLT cublasLtCreate(Handle** handle) {
    void* context = nullptr;
    if (cuCtxGetCurrent(&context) != 0 || context == nullptr) return NOT_INITIALIZED;
    return create(handle, Handle{HANDLE_MARK, context});
}

FAKE_CUBLASLT cublasLtDestroy(Handle* handle) {
    if (!is_handle(handle)) return INVALID_VALUE;
    handle->mark = 0;
    delete handle;
    return SUCCESS;
}

FAKE_CUBLASLT cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
    if (!is_known(type) || ld < 0 || static_cast<uint64_t>(ld) < rows || rows == 0 || columns == 0) return INVALID_VALUE;
    Layout value;
    value.type = type;
    value.rows = rows;
    value.columns = columns;
    value.ld = ld;
    return create(layout, value);
}

FAKE_CUBLASLT cublasLtMatrixLayoutDestroy(Layout* layout) {
    delete layout;
    return SUCCESS;
}

FAKE_CUBLASLT cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t bytes) {
    if (layout == nullptr) return INVALID_VALUE;
    switch (attribute) {
        case LAYOUT_BATCH_COUNT: return set(layout->batch_count, value, bytes);
        case LAYOUT_STRIDED_BATCH_OFFSET: return set(layout->batch_stride, value, bytes);
        default: return INVALID_VALUE;
    }
}

FAKE_CUBLASLT cublasLtMatmulDescCreate(Desc** desc, int compute, int scale) {
    Desc value;
    value.compute = compute;
    value.scale = scale;
    return create(desc, value);
}

FAKE_CUBLASLT cublasLtMatmulDescDestroy(Desc* desc) {
    delete desc;
    return SUCCESS;
}

FAKE_CUBLASLT cublasLtMatmulDescSetAttribute(Desc* desc, int attribute, const void* value, size_t bytes) {
    if (desc == nullptr) return INVALID_VALUE;
    switch (attribute) {
        case DESC_TRANSA: return set(desc->transa, value, bytes);
        case DESC_TRANSB: return set(desc->transb, value, bytes);
        case DESC_EPILOGUE: return set(desc->epilogue, value, bytes);
        case DESC_BIAS_POINTER: return set(desc->bias, value, bytes);
        default: return INVALID_VALUE;
    }
}

FAKE_CUBLASLT cublasLtMatmulPreferenceCreate(Preference** preference) { return create(preference, Preference()); }

FAKE_CUBLASLT cublasLtMatmulPreferenceDestroy(Preference* preference) {
    delete preference;
    return SUCCESS;
}

FAKE_CUBLASLT cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                                   size_t bytes) {
    if (preference == nullptr) return INVALID_VALUE;
    if (attribute == PREF_MAX_WORKSPACE_BYTES) return set(preference->workspace, value, bytes);
    if (attribute == PREF_REDUCTION_SCHEME_MASK) return set(preference->reduction_schemes, value, bytes);
    if (attribute >= PREF_MIN_ALIGNMENT_A_BYTES && attribute <= PREF_MIN_ALIGNMENT_D_BYTES) {
        return set(preference->alignments[attribute - PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
    }
    return INVALID_VALUE;
}

// Two algorithms, behind one that does not work: they want all of the alignment that they are promised. The first one
// that does works in memory, where that is allowed and there are many terms.
FAKE_CUBLASLT cublasLtMatmulAlgoGetHeuristic(Handle* handle, const Desc* desc, const Layout* a, const Layout* b,
                                             const Layout* c, const Layout* d, const Preference* preference,
                                             int requested, HeuristicResult* results, int* returned) {
    if (!is_handle(handle)) return NOT_INITIALIZED;
    if (!desc || !a || !b || !c || !d || !preference || !results || !returned || requested < 1) return INVALID_VALUE;
    *returned = 0;
    const Layout* const layouts[4] = {a, b, c, d};
    if (!types_fit(*desc, layouts) || !sizes_fit(*desc, layouts)) return NOT_SUPPORTED;
    const uint64_t terms = desc->transa == OP_T ? a->rows : a->columns;
    HeuristicResult result = {};
    result.algorithm.problem = problem_of(*desc, layouts);
    memcpy(result.algorithm.alignments, preference->alignments, sizeof(preference->alignments));
    result.algorithm.bias_alignment = bias_alignment(*desc);
    const uint64_t wanted = terms >= 64 ? 1 << 16 : 0;
    const struct {
        int state;
        uint64_t workspace;
    } all[] = {{NOT_SUPPORTED, 0}, {SUCCESS, wanted <= preference->workspace ? wanted : 0}, {SUCCESS, 0}};
    for (const auto& one : all) {
        if (*returned == requested) break;
        result.state = one.state;
        result.workspace = one.workspace;
        result.algorithm.workspace = one.workspace;
        result.algorithm.number = static_cast<uint64_t>(*returned);
        results[(*returned)++] = result;
    }
    return SUCCESS;
}

FAKE_CUBLASLT cublasLtMatmul(Handle* handle, const Desc* desc, const void* alpha, const void* a, const Layout* a_layout,
                             const void* b, const Layout* b_layout, const void* beta, const void* c,
                             const Layout* c_layout, void* d, const Layout* d_layout, const Algorithm* algorithm,
                             void* workspace, size_t workspace_bytes, void* stream) {
    void* context = nullptr;
    if (!is_handle(handle) || cuCtxGetCurrent(&context) != 0 || context != handle->context) return NOT_INITIALIZED;
    if (!desc || !alpha || !beta || !a || !b || !c || !d || !a_layout || !b_layout || !c_layout || !d_layout) {
        return INVALID_VALUE;
    }
    const Layout* const layouts[4] = {a_layout, b_layout, c_layout, d_layout};
    const void* const data[4] = {a, b, c, d};
    if (algorithm == nullptr || algorithm->problem != problem_of(*desc, layouts)) return INVALID_VALUE;
    for (int i = 0; i < 4; ++i) {
        if (algorithm->alignments[i] == 0 || !is_aligned(data[i], algorithm->alignments[i])) return INVALID_VALUE;
    }
    if (workspace_bytes < algorithm->workspace || (algorithm->workspace > 0 && !is_aligned(workspace, 16))) {
        return INVALID_VALUE;
    }
    if ((desc->epilogue & EPILOGUE_BIAS) && desc->bias == 0) return INVALID_VALUE;
    if ((desc->epilogue & EPILOGUE_BIAS) && !is_aligned(reinterpret_cast<const void*>(desc->bias), algorithm->bias_alignment)) {
        return INVALID_VALUE;
    }
    const bool is_double = desc->scale == R_64F;
    const auto factor = [is_double](const void* at) {
        return is_double ? *static_cast<const double*>(at) : *static_cast<const float*>(at);
    };
    char line[96];
    snprintf(line, sizeof(line), "cublaslt algorithm=%d epilogue=%u adds=%d type=%d", static_cast<int>(algorithm->number),
             desc->epilogue, factor(beta) != 0.0, d_layout->type);
    fake_cuda_note(line);
    auto* bytes = static_cast<unsigned char*>(workspace);
    return enqueue({*desc, *a_layout, *b_layout, *d_layout, a, b, c, d, factor(alpha), factor(beta), bytes,
                    algorithm->workspace, milliseconds_of(algorithm->number)}, stream);
}
