// tenon/create.hpp - attributes, and the node that a kernel is made for.
#ifndef TENON_CREATE_HPP
#define TENON_CREATE_HPP

#include "view.hpp"

namespace tenon TENON_OWN {

// An element type, as an attribute.
struct DType {
    TenonDType number;
    std::string_view name() const { return name_of(number); }
    friend bool operator==(DType a, DType b) { return a.number == b.number; }
    friend bool operator!=(DType a, DType b) { return a.number != b.number; }
};

// A shape that may be partly unknown (-1), as an attribute or of an input.
struct PartialShape {
    bool unknown_rank;
    std::vector<int64_t> dims;
};

namespace detail {

// What an attribute of a C++ type is at the boundary, and how a value is copied from there.
template <class T> struct AttrOf;
#define TENON_ATTR_AS(type, raw, kind_, text, expression) \
    template <> struct AttrOf<type> { \
        using Raw = raw; \
        static constexpr TenonAttrKind kind = kind_; \
        static constexpr const char *name = text; \
        static type copy(const raw &item) { return expression; } \
    }
TENON_ATTR_AS(int64_t, int64_t, TENON_ATTR_INT, "int", item);
TENON_ATTR_AS(float, float, TENON_ATTR_FLOAT, "float", item);
TENON_ATTR_AS(bool, uint8_t, TENON_ATTR_BOOL, "bool", item != 0);
TENON_ATTR_AS(std::string, TenonStr, TENON_ATTR_STRING, "string", std::string(view_of(item)));
TENON_ATTR_AS(DType, TenonDType, TENON_ATTR_TYPE, "type", DType{ item });
#undef TENON_ATTR_AS

template <> struct AttrOf<PartialShape> {
    using Raw = TenonShapeView;
    static constexpr TenonAttrKind kind = TENON_ATTR_SHAPE;
    static constexpr const char *name = "shape";
    static PartialShape copy(const TenonShapeView &item)
    {
        const bool unknown = item.unknown_rank != 0;
        return PartialShape{ unknown, std::vector<int64_t>(item.dims.ptr, item.dims.ptr + item.dims.len) };
    }
};

inline std::string_view kind_name(TenonAttrKind kind)
{
    constexpr std::string_view names[] = { "", "int", "float", "bool", "string", "type", "shape", "tensor", "func" };
    return kind < sizeof names / sizeof names[0] ? names[kind] : std::string_view("an unknown kind");
}

} // namespace detail

// The attributes of one node, valid during the call that lent them.
class Attrs {
public:
    explicit Attrs(const TenonAttrs *raw) : raw_(raw) {}
    bool has(const char *name) const
    {
        TenonAttrView view;
        return tenon_host->attr(raw_, tenon_str(name), &view) == TENON_OK;
    }
    // An attribute: int64_t, float, bool, std::string, DType, PartialShape.
    template <class T> T get(const char *name) const
    {
        using Of = detail::AttrOf<T>;
        return Of::copy(*static_cast<const typename Of::Raw *>(view(name, Of::kind, Of::name, false).data));
    }
    // A list of such.
    template <class T> std::vector<T> list(const char *name) const
    {
        using Of = detail::AttrOf<T>;
        const TenonAttrView found = view(name, Of::kind, Of::name, true);
        std::vector<T> items;
        items.reserve(found.len);
        for (size_t at = 0; at < found.len; at++) {
            items.push_back(Of::copy(static_cast<const typename Of::Raw *>(found.data)[at]));
        }
        return items;
    }
    // A tensor in host memory; the reference is valid as long as the attributes are.
    const TenonSlot &tensor(const char *name) const
    {
        return *static_cast<const TenonSlot *>(view(name, TENON_ATTR_TENSOR, "tensor", false).data);
    }

private:
    TenonAttrView view(const char *name, TenonAttrKind kind, const char *wanted, bool list) const
    {
        TenonAttrView view;
        const TenonCode code = tenon_host->attr(raw_, tenon_str(name), &view);
        if (code != TENON_OK) {
            throw Error(code, detail::text("attribute %s: the node has none", name));
        }
        if (view.kind != kind || (view.is_list != 0) != list) {
            throw invalid_argument("attribute %s: expected %s%s, found %s%s", name, list ? "a list of " : "", wanted,
                                   view.is_list ? "a list of " : "", detail::kind_name(view.kind).data());
        }
        return view;
    }

    const TenonAttrs *raw_;
};

// Positions of one named argument.
struct Range {
    uint32_t first;
    uint32_t count;
};

// A node for which a kernel is made, or for which it is asked whether it can be (`supports`).
class Create {
public:
    explicit Create(const TenonCreate *raw) : raw_(raw) {}
    const TenonCreate &raw() const { return *raw_; }
    Attrs attrs() const { return Attrs(raw_->attrs); }
    template <class T> T attr(const char *name) const { return attrs().get<T>(name); }
    template <class T> std::vector<T> attr_list(const char *name) const { return attrs().list<T>(name); }
    float attr_float(const char *name) const { return attr<float>(name); }
    int64_t attr_int(const char *name) const { return attr<int64_t>(name); }
    bool attr_bool(const char *name) const { return attr<bool>(name); }
    std::string attr_string(const char *name) const { return attr<std::string>(name); }

    std::string_view op() const { return view_of(raw_->op); }
    std::string_view node() const { return view_of(raw_->node); }
    std::string_view device() const { return view_of(raw_->device); }
    // State of the device that the kernel will run on, of class D; for a kernel of that device type alone.
    template <class D> D *device_as() const { return reinterpret_cast<D *>(raw_->device_state); }

    uint32_t inputs() const { return raw_->input_count; }
    uint32_t outputs() const { return raw_->output_count; }
    DType input_type(uint32_t index) const { return DType{ raw_->input_types[checked(index, inputs())] }; }
    DType output_type(uint32_t index) const { return DType{ raw_->output_types[checked(index, outputs())] }; }
    PartialShape input_shape(uint32_t index) const
    {
        return detail::AttrOf<PartialShape>::copy(raw_->input_shapes[checked(index, inputs())]);
    }
    // The elements of an input that is the same in every call, in host memory; nothing for another input.
    template <class T> std::optional<View<const T>> constant(uint32_t index) const
    {
        const TenonSlot &slot = raw_->constants[checked(index, inputs())];
        if (slot.data == nullptr) {
            return std::nullopt;
        }
        return detail::view_as<const T>(slot, "constant", index);
    }
    // Positions of a named argument.
    Range input_range(std::string_view name) const { return range(raw_->input_args, raw_->input_ranges, name); }
    Range output_range(std::string_view name) const { return range(raw_->output_args, raw_->output_ranges, name); }
    // The plugin's knobs, with the values of the session that the kernel is made for.
    Knobs knobs() const { return Knobs(raw_->context); }
    // One of them; TenonKnobValue says which field counts.
    TenonKnobValue knob(const char *name) const { return knobs().read(name); }

private:
    static uint32_t checked(uint32_t index, uint32_t count)
    {
        if (index >= count) {
            throw internal("argument %u: the node has %u", index, count);
        }
        return index;
    }
    static Range range(TenonStrs names, const TenonRange *ranges, std::string_view name)
    {
        for (size_t at = 0; at < names.len; at++) {
            if (view_of(names.ptr[at]) == name) {
                return Range{ ranges[at].start, ranges[at].len };
            }
        }
        throw internal("argument %s: the op has none of that name", std::string(name).c_str());
    }

    const TenonCreate *raw_;
};

} // namespace tenon

#endif // TENON_CREATE_HPP
