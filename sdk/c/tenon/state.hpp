// tenon/state.hpp - what outlives a call: resources of a session, found by container and name.
#ifndef TENON_STATE_HPP
#define TENON_STATE_HPP

#include "call.hpp"

namespace tenon TENON_OWN {

namespace detail {

// The type of resources that hold a T, whose name T says: `static constexpr const char *resource_name`.
template <class T> void destroy_resource(void *value)
{
    delete static_cast<T *>(value);
}
template <class T>
TENON_OWN inline const TenonResourceType resource_type = {
    sizeof(TenonResourceType), 0, str_of(T::resource_name), destroy_resource<T>, nullptr,
};

} // namespace detail

// A counted reference to a resource that holds a T. Any thread may use the value: T has a lock where it needs one.
template <class T> class Resource {
public:
    Resource() = default;
    // Takes over one reference.
    explicit Resource(TenonResource *raw) : raw_(raw) {}
    Resource(const Resource &other) : raw_(other.raw_) { tenon_host->state->retain_resource(raw_); }
    Resource(Resource &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Resource &operator=(Resource other) noexcept
    {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Resource() { tenon_host->state->release_resource(raw_); }
    TenonResource *raw() const { return raw_; }
    T *get() const
    {
        return static_cast<T *>(tenon_host->state->resource_value(raw_, &detail::resource_type<T>));
    }
    T &operator*() const { return *get(); }
    T *operator->() const { return get(); }
    explicit operator bool() const { return get() != nullptr; }

private:
    TenonResource *raw_ = nullptr;
};

namespace detail {

template <class T, class Make> TenonCode make_resource(void *data, void **value, TenonSink *sink)
{
    return guarded_by(sink, [&] {
        std::unique_ptr<T> made = (*static_cast<Make *>(data))();
        *value = made.release();
    });
}

} // namespace detail

// Finds the resource of the call's session, or makes it by `make`, which gives a std::unique_ptr<T>. An empty
// container is the default one.
template <class T, class Make>
Resource<T> find_or_make(const Call &call, std::string_view container, std::string_view name, Make make)
{
    TenonResource *found = nullptr;
    require(tenon_host->state->resource(call.raw().record, str_of(container), str_of(name),
                                        &detail::resource_type<T>, detail::make_resource<T, Make>, &make, &found));
    return Resource<T>(found);
}

// Finds the resource; NOT_FOUND where there is none.
template <class T> Resource<T> find(const Call &call, std::string_view container, std::string_view name)
{
    TenonResource *found = nullptr;
    require(tenon_host->state->resource(call.raw().record, str_of(container), str_of(name),
                                        &detail::resource_type<T>, nullptr, nullptr, &found));
    return Resource<T>(found);
}

// Removes the resource from the session; NOT_FOUND where there is none.
template <class T> void remove(const Call &call, std::string_view container, std::string_view name)
{
    require(tenon_host->state->remove_resource(call.raw().record, str_of(container), str_of(name),
                                               str_of(T::resource_name)));
}

// The resource in element 0 of a resource input.
template <class T> Resource<T> input_resource(const Call &call, uint32_t index)
{
    TenonResource *raw = tenon_resource_at(&call.slot(index), 0);
    tenon_host->state->retain_resource(raw);
    Resource<T> resource(raw);
    if (!resource) {
        throw invalid_argument("input %u: expected a resource of type %s", index, T::resource_name);
    }
    return resource;
}

// Returns a resource as a scalar resource output.
template <class T> void output_resource(const Call &call, uint32_t index, const Resource<T> &resource)
{
    TenonSlot &slot = call.prepare(index, {});
    if (slot.dtype != TENON_RESOURCE) {
        throw internal("output %u: expected a resource, found %s", index, std::string(name_of(slot.dtype)).c_str());
    }
    auto *element = static_cast<TenonResourceElement *>(slot.data);
    tenon_host->state->retain_resource(resource.raw());
    tenon_host->state->release_resource(std::exchange(element->resource, resource.raw()));
}

} // namespace tenon

#endif // TENON_STATE_HPP
