// tenon/device.hpp - how a class becomes a device's table.
#ifndef TENON_DEVICE_HPP
#define TENON_DEVICE_HPP

#include "base.hpp"

namespace tenon TENON_OWN {

// The entries of a class that is an open device, as tenon::device<D>("NAME") registers it. Besides the types D::Stream
// and D::Event, the second with a constructor without arguments, D has
//
//     static uint32_t count();                       how many there are; an error is the reason for none
//     D(uint32_t ordinal, TenonDevice *record);      opens one
//                                                    either may take tenon::Knobs as its last argument
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
    template <class Body> static TenonCode guarded(TenonSink *sink, Body body) noexcept
    {
        return detail::guarded_by(sink, body);
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
    static uint32_t probe(const TenonHost *, const TenonPluginContext *context, TenonSink *sink)
    {
        uint32_t count = 0;
        guarded(sink, [&] {
            if constexpr (std::is_invocable_v<decltype(&D::count), Knobs>) {
                count = D::count(Knobs(context));
            } else {
                count = D::count();
            }
        });
        return count;
    }
    static TenonCode open(const TenonHost *, const TenonPluginContext *context, uint32_t ordinal,
                          TenonDevice *record, TenonDeviceState **result, TenonSink *sink)
    {
        return guarded(sink, [&] {
            D *made = nullptr;
            if constexpr (std::is_constructible_v<D, uint32_t, TenonDevice *, Knobs>) {
                made = new D(ordinal, record, Knobs(context));
            } else {
                made = new D(ordinal, record);
            }
            *result = reinterpret_cast<TenonDeviceState *>(made);
        });
    }
    static constexpr TenonDeviceTable entries = {
        sizeof(TenonDeviceTable), 0, destroy, attributes, allocate, deallocate, can_copy, copy,
        create_stream, destroy_stream, synchronize_stream, notify, create_event, destroy_event,
        record_event, wait_event, query_event, synchronize, nullptr,
    };
};

} // namespace tenon

#endif // TENON_DEVICE_HPP
