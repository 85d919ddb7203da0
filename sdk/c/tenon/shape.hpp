// tenon/shape.hpp - shape functions: from the shapes of the inputs, as far as they are known, to those of the outputs.
#ifndef TENON_SHAPE_HPP
#define TENON_SHAPE_HPP

#include "create.hpp"

namespace tenon TENON_OWN {

// A shape, and a dimension, of one run of a shape function. Two dimensions that are unknown and equal are the same.
struct Shape {
    TenonShapeId id;
};
struct Dim {
    TenonDimId id;
    friend bool operator==(Dim a, Dim b) { return a.id == b.id; }
    friend bool operator!=(Dim a, Dim b) { return a.id != b.id; }
};

// One run of a shape function: a function `void(tenon::ShapeCall &)` that is given to op(...).shape<function>(). What
// it throws refuses the inputs.
class ShapeCall {
public:
    explicit ShapeCall(TenonShapeCall *raw) : raw_(raw) {}
    TenonShapeCall *raw() const { return raw_; }
    Attrs attrs() const { return Attrs(table().attrs(raw_)); }
    template <class T> T attr(const char *name) const { return attrs().get<T>(name); }
    template <class T> std::vector<T> attr_list(const char *name) const { return attrs().list<T>(name); }
    uint32_t inputs() const { return table().input_count(raw_); }
    uint32_t outputs() const { return table().output_count(raw_); }
    Shape input(uint32_t index) const { return Shape{ table().input(raw_, index) }; }

    // What is known of a shape: its rank, its dimensions (-1 where unknown); of a dimension: its size.
    std::optional<uint32_t> rank(Shape shape) const
    {
        const int32_t rank = table().rank(raw_, shape.id);
        return rank < 0 ? std::nullopt : std::optional<uint32_t>(static_cast<uint32_t>(rank));
    }
    std::optional<std::vector<int64_t>> sizes(Shape shape) const
    {
        const auto known = rank(shape);
        if (!known) {
            return std::nullopt;
        }
        std::vector<int64_t> sizes;
        for (uint32_t at = 0; at < *known; at++) {
            sizes.push_back(table().value(raw_, dim(shape, at).id));
        }
        return sizes;
    }
    std::optional<int64_t> value(Dim dim) const
    {
        const int64_t value = table().value(raw_, dim.id);
        return value < 0 ? std::nullopt : std::optional<int64_t>(value);
    }
    // A dimension, also counted from the end where the rank is known; an unknown one where there is none.
    Dim dim(Shape shape, int64_t at) const
    {
        if (at < 0) {
            const auto known = rank(shape);
            at += known ? *known : 0;
        }
        return at < 0 ? make_dim() : Dim{ table().dim(raw_, shape.id, static_cast<uint32_t>(at)) };
    }
    // The dimensions of a shape of known rank.
    std::vector<Dim> dims(Shape shape) const
    {
        std::vector<Dim> dims;
        for (uint32_t at = 0; at < rank(shape).value_or(0); at++) {
            dims.push_back(dim(shape, at));
        }
        return dims;
    }

    // Makes a dimension; an unknown one without a size.
    Dim make_dim(int64_t size = TENON_UNKNOWN_DIM) const { return Dim{ table().make_dim(raw_, size) }; }
    Shape make_shape(const std::vector<Dim> &dims) const
    {
        static_assert(sizeof(Dim) == sizeof(TenonDimId), "a dimension is its number");
        const auto *ids = reinterpret_cast<const TenonDimId *>(dims.data());
        return Shape{ table().make_shape(raw_, ids, static_cast<uint32_t>(dims.size())) };
    }
    // A shape of these sizes, -1 where one is unknown.
    Shape shape_of(Dims sizes) const
    {
        std::vector<Dim> dims;
        for (const int64_t size : sizes) {
            dims.push_back(make_dim(size));
        }
        return make_shape(dims);
    }
    Shape scalar() const { return shape_of({}); }
    Shape unknown() const { return Shape{ table().unknown_shape(raw_) }; }
    Shape unknown_of_rank(uint32_t rank) const
    {
        std::vector<Dim> dims;
        for (uint32_t at = 0; at < rank; at++) {
            dims.push_back(make_dim());
        }
        return make_shape(dims);
    }

    // What is known of both; shapes or sizes that contradict each other are refused.
    Shape merge(Shape a, Shape b) const
    {
        Shape result{};
        require(table().merge(raw_, a.id, b.id, &result.id));
        return result;
    }
    Dim merge(Dim a, Dim b) const
    {
        Dim result{};
        require(table().merge_dim(raw_, a.id, b.id, &result.id));
        return result;
    }
    // The shape with this rank; another rank is refused.
    Shape with_rank(Shape shape, uint32_t rank) const
    {
        Shape result{};
        require(table().with_rank(raw_, shape.id, rank, &result.id));
        return result;
    }
    // Refuses a shape whose rank is known and lower.
    Shape with_rank_at_least(Shape shape, uint32_t least) const
    {
        const auto known = rank(shape);
        if (known && *known < least) {
            throw invalid_argument("expected a rank of at least %u, found %u", least, *known);
        }
        return shape;
    }
    // The shape with another dimension at this place, also counted from the end; of unknown rank it stays as it is.
    Shape replace_dim(Shape shape, int64_t at, Dim dim) const
    {
        const auto known = rank(shape);
        if (!known) {
            return shape;
        }
        const int64_t place = at < 0 ? at + *known : at;
        if (place < 0 || place >= *known) {
            throw invalid_argument("dimension %" PRId64 ": expected one of a shape of rank %u", at, *known);
        }
        std::vector<Dim> changed = dims(shape);
        changed[static_cast<size_t>(place)] = dim;
        return make_shape(changed);
    }
    // The shape that two shapes have together where sizes of 1 are stretched, as NumPy and TensorFlow do it.
    Shape broadcast(Shape a, Shape b) const
    {
        if (!rank(a) || !rank(b)) {
            return unknown();
        }
        const std::vector<Dim> of_a = dims(a);
        const std::vector<Dim> of_b = dims(b);
        std::vector<Dim> result(std::max(of_a.size(), of_b.size()));
        for (size_t at = 1; at <= result.size(); at++) {
            Dim &place = result[result.size() - at];
            if (at > of_a.size() || at > of_b.size()) {
                place = at > of_a.size() ? of_b[of_b.size() - at] : of_a[of_a.size() - at];
            } else {
                place = broadcast(of_a[of_a.size() - at], of_b[of_b.size() - at]);
            }
        }
        return make_shape(result);
    }

    // An input that is the same in every call: its elements, or nothing. Its integers, of int32 or int64. Itself,
    // read as a shape, as far as its values are known.
    template <class T> std::optional<View<const T>> constant(uint32_t index) const
    {
        const TenonSlot *slot = table().constant(raw_, index);
        return slot == nullptr ? std::nullopt
                               : std::optional<View<const T>>(detail::view_as<const T>(*slot, "input", index));
    }
    std::optional<std::vector<int64_t>> constant_integers(uint32_t index) const
    {
        const TenonSlot *slot = table().constant(raw_, index);
        return slot == nullptr ? std::nullopt
                               : std::optional<std::vector<int64_t>>(detail::integers_of(*slot, "input", index));
    }
    Shape constant_as_shape(uint32_t index) const
    {
        Shape result{};
        require(table().constant_as_shape(raw_, index, &result.id));
        return result;
    }

    void set_output(uint32_t index, Shape shape) const { require(table().set_output(raw_, index, shape.id)); }
    // Element type and shape of each part of the value behind a resource input, and a part of a resource output.
    std::vector<std::pair<DType, Shape>> input_handle(uint32_t index) const
    {
        std::vector<std::pair<DType, Shape>> parts;
        std::pair<DType, Shape> part{};
        while (table().input_handle(raw_, index, static_cast<uint32_t>(parts.size()), &part.first.number,
                                    &part.second.id) > parts.size()) {
            parts.push_back(part);
        }
        return parts;
    }
    void add_output_handle(uint32_t index, DType dtype, Shape shape) const
    {
        require(table().add_output_handle(raw_, index, dtype.number, shape.id));
    }

private:
    static const TenonShapeTable &table() { return *tenon_host->shapes; }
    Dim broadcast(Dim a, Dim b) const
    {
        const auto size_a = value(a);
        const auto size_b = value(b);
        if (a == b || (size_b && *size_b == 1)) {
            return a;
        }
        if (size_a && *size_a == 1) {
            return b;
        }
        if (size_a && size_b) {
            if (*size_a != *size_b) {
                throw invalid_argument("sizes %" PRId64 " and %" PRId64 " do not broadcast", *size_a, *size_b);
            }
            return a;
        }
        // An unknown one beside a size other than 1 can only be that or 1; two unknown ones say nothing.
        return size_a ? a : size_b ? b : make_dim();
    }

    TenonShapeCall *raw_;
};

namespace detail {

template <auto function> TenonCode run_shape(const TenonHost *host, TenonShapeCall *raw)
{
    return guarded(
        [&] {
            ShapeCall call(raw);
            function(call);
        },
        [&](TenonCode code, const char *text) { return host->shapes->fail(raw, code, tenon_str(text)); });
}

} // namespace detail

// Shape function: output 0 has the shape of input 0.
inline void same_shape(ShapeCall &call)
{
    call.set_output(0, call.input(0));
}

// Shape function: output 0 has the shape that inputs 0 and 1 have together.
inline void broadcast_shape(ShapeCall &call)
{
    call.set_output(0, call.broadcast(call.input(0), call.input(1)));
}

} // namespace tenon

#endif // TENON_SHAPE_HPP
