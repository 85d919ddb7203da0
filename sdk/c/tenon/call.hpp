// tenon/call.hpp - one call of a kernel.
#ifndef TENON_CALL_HPP
#define TENON_CALL_HPP

#include "create.hpp"

namespace tenon TENON_OWN {

// Elements that are read and written, which may be the same memory: `y[at]` is written after `x[at]` was read.
template <class T> struct InPlace {
    const T *x;
    T *y;
    uint64_t size;
};

// The driver's own handles of the device and the stream of a call: see TenonNativeHandles.
struct Native {
    std::string_view api;
    void *device;
    void *stream;
};

namespace detail {

// The body of a parallel_for, with the first thing that a block threw.
template <class Body> struct Parallel {
    Body &body;
    std::atomic<uint64_t> done{ 0 };
    std::mutex lock{};
    std::exception_ptr failure{};

    static void run(void *data, uint64_t begin, uint64_t end, uint32_t worker) noexcept
    {
        Parallel &self = *static_cast<Parallel *>(data);
        try {
            if constexpr (std::is_invocable_v<Body &, uint64_t, uint64_t, uint32_t>) {
                self.body(begin, end, worker);
            } else {
                (void)worker;
                self.body(begin, end);
            }
        } catch (...) {
            const std::lock_guard<std::mutex> held(self.lock);
            if (self.failure == nullptr) {
                self.failure = std::current_exception();
            }
        }
        self.done += end - begin;
    }
};

} // namespace detail

// One call of a kernel. It is a pointer: a copy is the same call.
class Call {
public:
    explicit Call(const TenonCall *raw) : raw_(raw) {}
    const TenonCall &raw() const { return *raw_; }
    using Reported = tenon::Reported;

    uint32_t inputs() const { return raw_->input_count; }
    uint32_t outputs() const { return raw_->output_count; }
    // Positions of the named argument at this place of the signature.
    Range input_range(uint32_t arg) const { return range(raw_->input_args, raw_->input_arg_count, arg); }
    Range output_range(uint32_t arg) const { return range(raw_->output_args, raw_->output_arg_count, arg); }

    const TenonSlot &slot(uint32_t index) const
    {
        if (index >= raw_->input_count) {
            throw internal("input %u: the call has %u", index, raw_->input_count);
        }
        return *raw_->inputs[index];
    }
    TenonSlot &output_slot(uint32_t index) const
    {
        if (index >= raw_->output_count) {
            throw internal("output %u: the call has %u", index, raw_->output_count);
        }
        return raw_->outputs[index];
    }
    Dims dims(uint32_t index) const { return dims_of(slot(index)); }

    // The elements of an input.
    template <class T> View<const T> input(uint32_t index) const
    {
        return detail::view_as<const T>(slot(index), "input", index);
    }
    // The tensors of an argument such as `values: N * T`.
    template <class T> std::vector<View<const T>> input_list(uint32_t arg) const
    {
        const Range at = input_range(arg);
        std::vector<View<const T>> views;
        for (uint32_t index = at.first; index < at.first + at.count; index++) {
            views.push_back(input<T>(index));
        }
        return views;
    }
    // The one element of an input that is a scalar, or has one element.
    template <class T> T scalar(uint32_t index) const
    {
        const View<const T> view = input<T>(index);
        if (view.size() != 1) {
            throw invalid_argument("input %u: expected one element, found shape %s", index,
                                   view.dims().text().c_str());
        }
        return view[0];
    }
    // The integers of an input of int32 or int64: axes, sizes, shapes.
    std::vector<int64_t> integers(uint32_t index) const
    {
        return detail::integers_of(slot(index), "input", index);
    }

    // Makes sure that an output has this shape: its elements are undefined, in memory of the output's own kind.
    TenonSlot &prepare(uint32_t index, Dims dims) const
    {
        TenonSlot &slot = output_slot(index);
        require(tenon_prepare(raw_, index, dims.data(), dims.rank()));
        return slot;
    }
    // An output of this shape, its elements undefined: write every one.
    template <class T> View<T> output(uint32_t index, Dims dims) const
    {
        return detail::view_as<T>(prepare(index, dims), "output", index);
    }
    template <class T> View<T> output(uint32_t index, const int64_t *dims, uint32_t rank) const
    {
        return output<T>(index, Dims(dims, rank));
    }
    // An output with the shape of a view.
    template <class T, class U> View<T> output_like(uint32_t index, const View<U> &view) const
    {
        return output<T>(index, view.dims());
    }
    // Whether nobody reads an output: it may be left as it is.
    bool is_unused(uint32_t index) const { return (output_slot(index).flags & TENON_SLOT_FLAG_UNUSED) != 0; }

    // Lets an output take over the buffer of an input where nobody else has it and the kernel's `in_place` allows it;
    // else they are apart. Of an input that is asked for so, use nothing else.
    template <class T> InPlace<T> in_place(uint32_t from, uint32_t to) const
    {
        const View<const T> x = input<T>(from);
        TenonSlot &y = output_slot(to);
        const uint64_t size = x.size();
        if ((y.flags & TENON_SLOT_FLAG_PLANNED) == 0
            && raw_->services->forward(raw_->record, from, to, x.slot().dims, x.rank()) != 0) {
            T *data = detail::view_as<T>(y, "output", to).data();
            return InPlace<T>{ data, data, size };
        }
        return InPlace<T>{ x.data(), output_like<T>(to, x).data(), size };
    }
    // Returns the buffer of an input as an output, without a copy, under a shape with as many elements.
    void share(uint32_t from, uint32_t to, Dims dims) const
    {
        require(raw_->services->share(raw_->record, from, to, dims.data(), dims.rank()));
    }

    // Memory for the time of the call, for `count` elements, undefined; aligned to 64 bytes.
    template <class T> T *scratch(uint64_t count, TenonMemoryKind memory = TENON_ORDINARY_MEMORY) const
    {
        if (count > UINT64_MAX / sizeof(T)) {
            throw resource_exhausted("scratch: %" PRIu64 " elements of %zu bytes are too many", count, sizeof(T));
        }
        void *data = nullptr;
        require(raw_->services->scratch(raw_->record, count * sizeof(T), 64, memory, &data));
        return static_cast<T *>(data);
    }

    // Computes `total` units of about `cost_ns` each on the host's threads: body(begin, end), or body(begin, end,
    // worker) with an index below parallelism() that no two blocks have at once. What a block throws is thrown here
    // when all are done; so is CANCELLED or DEADLINE_EXCEEDED where units were left out.
    template <class Body> void parallel_for(uint64_t total, double cost_ns, Body body) const
    {
        detail::Parallel<Body> parallel{ body };
        raw_->services->parallel_for(raw_->record, total, cost_ns, detail::Parallel<Body>::run, &parallel);
        if (parallel.failure != nullptr) {
            std::rethrow_exception(parallel.failure);
        }
        if (parallel.done != total) {
            throw over();
        }
    }
    // As parallel_for, one unit after the other: body(at).
    template <class Body> void parallel_each(uint64_t total, double cost_ns, Body body) const
    {
        parallel_for(total, cost_ns, [&body](uint64_t begin, uint64_t end) {
            for (uint64_t at = begin; at < end; at++) {
                body(at);
            }
        });
    }
    uint32_t parallelism() const { return raw_->services->parallelism(raw_->record); }
    // Whether nobody waits for the results any more. A long computation asks now and then.
    bool cancelled() const { return tenon_cancelled(raw_) != 0; }
    // As cancelled, as an error.
    void check() const
    {
        if (cancelled()) {
            throw over();
        }
    }

    // The bytes of the elements of a string input, valid during the call.
    std::vector<std::string_view> strings(uint32_t index) const
    {
        std::vector<std::string_view> texts;
        for (const TenonStringElement &element : input<TenonStringElement>(index)) {
            texts.emplace_back(reinterpret_cast<const char *>(element.data), element.len);
        }
        return texts;
    }
    // A string output of this shape, all empty; then each of its elements.
    View<TenonStringElement> string_output(uint32_t index, Dims dims) const
    {
        return output<TenonStringElement>(index, dims);
    }
    void set_string(TenonStringElement &element, std::string_view text) const
    {
        require(tenon_host->strings->set(&element, str_of(text)));
    }

    // Keeps the tensor of an input beyond the call, without a copy; returns a kept one as an output.
    Kept keep(uint32_t index) const
    {
        TenonKeptTensor *kept = tenon_host->keep(&slot(index));
        if (kept == nullptr) {
            throw invalid_argument("input %u: there is no tensor to keep", index);
        }
        return Kept(kept);
    }
    void output_kept(uint32_t index, const Kept &kept) const
    {
        require(raw_->services->output_kept(raw_->record, index, kept.raw()));
    }

    // The device of the kernel, and the stream to enqueue on: null where the host wants it done at once. For a
    // kernel that is registered for the device type of class D alone.
    template <class D> D &device() const { return *reinterpret_cast<D *>(raw_->device_state); }
    template <class D> typename D::Stream *stream() const
    {
        return reinterpret_cast<typename D::Stream *>(raw_->stream);
    }
    // The driver's handles, on a device of another plugin; UNIMPLEMENTED where its plugin gives none.
    Native native() const
    {
        const auto *link = reinterpret_cast<const TenonExtNativeOf *>(
            tenon_find_ext(tenon_host->ext, TENON_EXT_NATIVE_OF, sizeof(TenonExtNativeOf)));
        TenonNativeHandles handles{};
        if (link == nullptr || raw_->device == nullptr
            || link->native(raw_->device, raw_->stream, &handles) != TENON_OK) {
            throw unimplemented("the device gives no handles of its driver: expected a device type whose plugin does");
        }
        return Native{ view_of(handles.api), handles.device, handles.stream };
    }

    std::string_view node() const { return view_of(raw_->services->node(raw_->record)); }
    uint64_t step_id() const { return raw_->step->step_id; }
    uint64_t now_ns() const { return raw_->services->now_ns(); }
    // Adds a span to the step's trace, from `begin_ns` on `now_ns` up to now; costs nothing where nothing is traced.
    void traced(const char *name, uint64_t begin_ns) const
    {
        if (raw_->tracing != 0) {
            raw_->services->trace(raw_->record, tenon_str(name), begin_ns, now_ns());
        }
    }
    // Ends a call whose `compute` returned TENON_PENDING, from any thread, once; the call is gone afterwards. With
    // a function: what it throws is the call's error.
    void complete() const { raw_->services->complete(raw_->record, TENON_OK); }
    template <class Body> void complete(Body body) const
    {
        const TenonCall *raw = raw_;
        const TenonCode code = detail::guarded(
            body, [raw](TenonCode code, const char *text) { return tenon_fail(raw, code, "%s", text); });
        raw->services->complete(raw->record, code);
    }

private:
    static Range range(const TenonRange *ranges, uint32_t count, uint32_t arg)
    {
        if (arg >= count) {
            throw internal("argument %u: the op has %u", arg, count);
        }
        return Range{ ranges[arg].start, ranges[arg].len };
    }
    Error over() const
    {
        const bool cancelled = __atomic_load_n(raw_->step->cancelled, __ATOMIC_RELAXED) != 0;
        return cancelled ? Error(TENON_CANCELLED, "the step was cancelled")
                         : Error(TENON_DEADLINE_EXCEEDED, "the step's deadline has passed");
    }

    const TenonCall *raw_;
};

} // namespace tenon

#endif // TENON_CALL_HPP
