// tenon.hpp - kernels as C++ classes, over tenon_plugin.h.
//
// A class with a constructor from tenon::Create, which reads attributes, and `void compute(tenon::Call&)`,
// becomes a kernel's table by tenon::table<Class>. What either throws becomes the call's error: a
// tenon::Error with its code, any other exception with INTERNAL. Nothing that is thrown leaves the library.
// A class of a device becomes a device's table by tenon::DeviceTable<Class>.
#ifndef TENON_HPP
#define TENON_HPP

#include "tenon_plugin.h"

#include <exception>
#include <new>
#include <string>

// What is a plugin's own, also where the library is not built with -fvisibility=hidden: the tables of two classes of
// one name would be one for all plugins of a process.
#if defined(__GNUC__)
#define TENON_OWN __attribute__((visibility("hidden")))
#else
#define TENON_OWN
#endif

namespace tenon {

// An error with one of TensorFlow's canonical codes.
class Error : public std::exception {
public:
    Error(TenonCode code, std::string message) : code_(code), message_(std::move(message)) {}
    TenonCode code() const noexcept { return code_; }
    const char *what() const noexcept override { return message_.c_str(); }

private:
    TenonCode code_;
    std::string message_;
};

// The element type of a C++ type.
template <class T> struct ElementOf;
template <> struct ElementOf<float> { static constexpr TenonDType value = TENON_FLOAT; };
template <> struct ElementOf<double> { static constexpr TenonDType value = TENON_DOUBLE; };
template <> struct ElementOf<int32_t> { static constexpr TenonDType value = TENON_INT32; };
template <> struct ElementOf<int64_t> { static constexpr TenonDType value = TENON_INT64; };
template <> struct ElementOf<uint8_t> { static constexpr TenonDType value = TENON_UINT8; };
template <> struct ElementOf<int8_t> { static constexpr TenonDType value = TENON_INT8; };

// Elements of an argument, dense and row-major, with their shape.
template <class T> class View {
public:
    View(T *data, const TenonSlot &slot) : data_(data), slot_(&slot) {}
    T *begin() const { return data_; }
    T *end() const { return data_ + slot_->elements; }
    T &operator[](uint64_t at) const { return data_[at]; }
    uint64_t size() const { return slot_->elements; }
    const int64_t *dims() const { return slot_->dims; }
    uint32_t rank() const { return slot_->rank; }

private:
    T *data_;
    const TenonSlot *slot_;
};

// A node for which a kernel is made.
class Create {
public:
    explicit Create(const TenonCreate *raw) : raw_(raw) {}
    const TenonCreate &raw() const { return *raw_; }
    float attr_float(const char *name) const { return *item<float>(name, TENON_ATTR_FLOAT); }
    int64_t attr_int(const char *name) const { return *item<int64_t>(name, TENON_ATTR_INT); }
    bool attr_bool(const char *name) const { return *item<uint8_t>(name, TENON_ATTR_BOOL) != 0; }
    std::string attr_string(const char *name) const
    {
        const TenonStr *text = item<TenonStr>(name, TENON_ATTR_STRING);
        return std::string(reinterpret_cast<const char *>(text->ptr), text->len);
    }

private:
    template <class T> const T *item(const char *name, TenonAttrKind kind) const
    {
        TenonAttrView view;
        const TenonCode code = tenon_host->attr(raw_->attrs, tenon_str(name), &view);
        if (code != TENON_OK) {
            throw Error(code, std::string("attribute ") + name + ": the node has none");
        }
        if (view.kind != kind || view.is_list) {
            throw Error(TENON_INVALID_ARGUMENT,
                        std::string("attribute ") + name + ": is of another kind");
        }
        return static_cast<const T *>(view.data);
    }

    const TenonCreate *raw_;
};

// One call of a kernel.
class Call {
public:
    explicit Call(const TenonCall *raw) : raw_(raw) {}
    const TenonCall &raw() const { return *raw_; }
    // The elements of an input.
    template <class T> View<const T> input(uint32_t index) const
    {
        if (index >= raw_->input_count || raw_->inputs[index]->dtype != ElementOf<T>::value) {
            throw Error(TENON_INVALID_ARGUMENT,
                        "input " + std::to_string(index) + " is not of the type that the kernel reads");
        }
        return View<const T>(static_cast<const T *>(raw_->inputs[index]->data), *raw_->inputs[index]);
    }
    // An output of this shape, its elements undefined.
    template <class T> View<T> output(uint32_t index, const int64_t *dims, uint32_t rank) const
    {
        if (index >= raw_->output_count || raw_->outputs[index].dtype != ElementOf<T>::value) {
            throw Error(TENON_INTERNAL,
                        "output " + std::to_string(index) + " is not of the type that the kernel writes");
        }
        const TenonCode code = tenon_prepare(raw_, index, dims, rank);
        if (code != TENON_OK) {
            throw Reported{code};
        }
        return View<T>(static_cast<T *>(raw_->outputs[index].data), raw_->outputs[index]);
    }
    // An output with the shape of a view.
    template <class T, class U> View<T> output_like(uint32_t index, const View<U> &view) const
    {
        return output<T>(index, view.dims(), view.rank());
    }
    // The device of the kernel, and the stream to enqueue on: null where the host wants it done at once. For a
    // kernel that is registered for the device type of class D alone.
    template <class D> D &device() const { return *reinterpret_cast<D *>(raw_->device_state); }
    template <class D> typename D::Stream *stream() const
    {
        return reinterpret_cast<typename D::Stream *>(raw_->stream);
    }
    // An error that the host has been told of.
    struct Reported {
        TenonCode code;
    };

private:
    const TenonCall *raw_;
};

namespace detail TENON_OWN {

// Runs `body`; what it throws goes to `report(code, message)`.
template <class Body, class Report> TenonCode guarded(Body body, Report report) noexcept
{
    try {
        body();
        return TENON_OK;
    } catch (const Call::Reported &reported) {
        return reported.code;
    } catch (const Error &error) {
        return report(error.code(), error.what());
    } catch (const std::bad_alloc &) {
        return report(TENON_RESOURCE_EXHAUSTED, "no memory");
    } catch (const std::exception &error) {
        return report(TENON_INTERNAL, error.what());
    } catch (...) {
        return report(TENON_INTERNAL, "an exception of an unknown type");
    }
}

template <class K> TenonCode create(const TenonCreate *raw, TenonKernelState **state)
{
    return guarded(
        [&] { *state = reinterpret_cast<TenonKernelState *>(new K(Create(raw))); },
        [&](TenonCode code, const char *text) { return tenon_refuse(raw, code, "%s", text); });
}

template <class K> TenonCode compute(TenonKernelState *state, const TenonCall *raw)
{
    return guarded(
        [&] {
            Call call(raw);
            reinterpret_cast<K *>(state)->compute(call);
        },
        [&](TenonCode code, const char *text) { return tenon_fail(raw, code, "%s", text); });
}

template <class K> void destroy(TenonKernelState *state)
{
    delete reinterpret_cast<K *>(state);
}

template <class K> constexpr TenonKernelTable make_table()
{
    TenonKernelTable table{};
    table.struct_size = sizeof(TenonKernelTable);
    table.create = create<K>;
    table.compute = compute<K>;
    table.destroy = destroy<K>;
    return table;
}

} // namespace detail

// The entries of a class, for TENON_KERNEL.
template <class K> TENON_OWN inline constexpr TenonKernelTable table = detail::make_table<K>();

// The entries of a class that is an open device, for
// TENON_DEVICE(id, "NAME", rank, DeviceTable<D>::probe, DeviceTable<D>::open, DeviceTable<D>::entries).
// Besides the types D::Stream and D::Event, the second with a constructor without arguments, D has
//
//     static uint32_t count();                       how many there are; an error is the reason for none
//     D(uint32_t ordinal, TenonDevice *record);      opens one
//     void describe(TenonDeviceAttributes &);        what tenon.h says of `attributes`; struct_size is set
//     void *allocate(uint64_t bytes, uint64_t align, TenonMemoryKind, Stream *);
//     void deallocate(void *, uint64_t bytes, TenonMemoryKind, Stream *);
//     bool can_copy(const TenonCopyRequest &);
//     void copy(const TenonCopyRequest &, Stream *);
//     Stream *create_stream();
//     void destroy_stream(Stream *);
//     void synchronize_stream(Stream &);
//     void notify(Stream &, TenonNotify, void *);
//     void record_event(Event &, Stream &);
//     void wait_event(Stream &, Event &);
//     TenonCode query_event(Event &);
//     void synchronize();
//
// which do what TenonDeviceTable in tenon.h says of the entries of these names. A stream is null where it is a
// pointer and the host wants things done at once.
template <class D> class TENON_OWN DeviceTable {
    using Stream = typename D::Stream;
    using Event = typename D::Event;

    static D &device(TenonDeviceState *state) { return *reinterpret_cast<D *>(state); }
    static Stream *stream(TenonStream *raw) { return reinterpret_cast<Stream *>(raw); }
    static Event &event(TenonEvent *raw) { return *reinterpret_cast<Event *>(raw); }
    // Without a sink the code is all that the host hears.
    template <class Body> static TenonCode guarded(TenonSink *sink, Body body) noexcept
    {
        return detail::guarded(body, [sink](TenonCode code, const char *text) {
            return sink != nullptr ? tenon_report(sink, code, "%s", text) : code;
        });
    }

    static void destroy(TenonDeviceState *state) { delete &device(state); }
    static void attributes(TenonDeviceState *state, TenonDeviceAttributes *result)
    {
        *result = TenonDeviceAttributes{};
        result->struct_size = sizeof(TenonDeviceAttributes);
        result->numa_node = -1;
        device(state).describe(*result);
    }
    static TenonCode allocate(TenonDeviceState *state, uint64_t bytes, uint64_t align,
                              TenonMemoryKind memory, TenonStream *on, void **result, TenonSink *sink)
    {
        return guarded(sink, [&] { *result = device(state).allocate(bytes, align, memory, stream(on)); });
    }
    static void deallocate(TenonDeviceState *state, void *data, uint64_t bytes, TenonMemoryKind memory,
                           TenonStream *on)
    {
        guarded(nullptr, [&] { device(state).deallocate(data, bytes, memory, stream(on)); });
    }
    static uint32_t can_copy(TenonDeviceState *state, const TenonCopyRequest *request)
    {
        bool can = false;
        guarded(nullptr, [&] { can = device(state).can_copy(*request); });
        return can;
    }
    static TenonCode copy(TenonDeviceState *state, const TenonCopyRequest *request, TenonStream *on,
                          TenonSink *sink)
    {
        return guarded(sink, [&] { device(state).copy(*request, stream(on)); });
    }
    static TenonCode create_stream(TenonDeviceState *state, TenonStream **result, TenonSink *sink)
    {
        return guarded(sink, [&] {
            *result = reinterpret_cast<TenonStream *>(device(state).create_stream());
        });
    }
    static void destroy_stream(TenonDeviceState *state, TenonStream *raw)
    {
        guarded(nullptr, [&] { device(state).destroy_stream(stream(raw)); });
    }
    static TenonCode synchronize_stream(TenonDeviceState *state, TenonStream *raw, TenonSink *sink)
    {
        return guarded(sink, [&] { device(state).synchronize_stream(*stream(raw)); });
    }
    static TenonCode notify(TenonDeviceState *state, TenonStream *raw, TenonNotify done, void *data)
    {
        return guarded(nullptr, [&] { device(state).notify(*stream(raw), done, data); });
    }
    static TenonCode create_event(TenonDeviceState *, TenonEvent **result, TenonSink *sink)
    {
        return guarded(sink, [&] { *result = reinterpret_cast<TenonEvent *>(new Event()); });
    }
    static void destroy_event(TenonDeviceState *, TenonEvent *raw) { delete &event(raw); }
    static TenonCode record_event(TenonDeviceState *state, TenonEvent *raw, TenonStream *on)
    {
        return guarded(nullptr, [&] { device(state).record_event(event(raw), *stream(on)); });
    }
    static TenonCode wait_event(TenonDeviceState *state, TenonStream *raw, TenonEvent *what)
    {
        return guarded(nullptr, [&] { device(state).wait_event(*stream(raw), event(what)); });
    }
    static TenonCode query_event(TenonDeviceState *state, TenonEvent *raw)
    {
        TenonCode found = TENON_OK;
        const TenonCode code = guarded(nullptr, [&] { found = device(state).query_event(event(raw)); });
        return code != TENON_OK ? code : found;
    }
    static TenonCode synchronize(TenonDeviceState *state, TenonSink *sink)
    {
        return guarded(sink, [&] { device(state).synchronize(); });
    }

public:
    static uint32_t probe(const TenonHost *, const TenonPlugin *, TenonSink *sink)
    {
        uint32_t count = 0;
        guarded(sink, [&] { count = D::count(); });
        return count;
    }
    static TenonCode open(const TenonHost *, const TenonPlugin *, uint32_t ordinal, TenonDevice *record,
                          TenonDeviceState **result, TenonSink *sink)
    {
        return guarded(sink, [&] { *result = reinterpret_cast<TenonDeviceState *>(new D(ordinal, record)); });
    }
    static constexpr TenonDeviceTable entries = {
        sizeof(TenonDeviceTable), 0, destroy, attributes, allocate, deallocate, can_copy, copy,
        create_stream, destroy_stream, synchronize_stream, notify, create_event, destroy_event,
        record_event, wait_event, query_event, synchronize, nullptr,
    };
};

} // namespace tenon

#endif // TENON_HPP
