// tenon/view.hpp - tensors as a kernel sees them.
#ifndef TENON_VIEW_HPP
#define TENON_VIEW_HPP

#include "element.hpp"

namespace tenon TENON_OWN {

// Dimensions of a slot.
inline Dims dims_of(const TenonSlot &slot) { return Dims(slot.dims, slot.rank); }

// Elements of an argument, dense and row-major, with their shape.
template <class T> class View {
public:
    View(T *data, const TenonSlot &slot) : data_(data), slot_(&slot) {}
    T *data() const { return data_; }
    T *begin() const { return data_; }
    T *end() const { return data_ + size(); }
    T &operator[](uint64_t at) const { return data_[at]; }
    uint64_t size() const { return slot_->elements; }
    bool empty() const { return size() == 0; }
    const TenonSlot &slot() const { return *slot_; }
    Dims dims() const { return dims_of(*slot_); }
    uint32_t rank() const { return slot_->rank; }
    // A dimension, also counted from the end: -1 is the last one. Out of range it is 1, as of a scalar.
    int64_t dim(int64_t at) const
    {
        const int64_t rank = slot_->rank;
        return at < -rank || at >= rank ? 1 : dims()[at];
    }
    // Elements of a row, which is what the last dimension holds, and the number of rows.
    uint64_t row_size() const { return static_cast<uint64_t>(dim(-1)); }
    uint64_t rows() const { return row_size() == 0 ? 0 : size() / row_size(); }
    T *row(uint64_t at) const { return data_ + at * row_size(); }

private:
    T *data_;
    const TenonSlot *slot_;
};

namespace detail {

// The elements of a slot, which are of a type that T reads.
template <class T> View<T> view_as(const TenonSlot &slot, const char *what, uint32_t index)
{
    using Of = ElementOf<std::remove_const_t<T>>;
    if (!Of::holds(slot.dtype)) {
        throw internal("%s %u: the kernel expects %s, found %s", what, index, name_of(Of::value).data(),
                       name_of(slot.dtype).data());
    }
    return View<T>(static_cast<T *>(slot.data), slot);
}

// The integers of a slot in host memory, of int32 or int64.
inline std::vector<int64_t> integers_of(const TenonSlot &slot, const char *what, uint32_t index)
{
    if (slot.dtype == TENON_INT32) {
        const auto view = view_as<const int32_t>(slot, what, index);
        return std::vector<int64_t>(view.begin(), view.end());
    }
    const auto view = view_as<const int64_t>(slot, what, index);
    return std::vector<int64_t>(view.begin(), view.end());
}

} // namespace detail

// A tensor that is kept beyond the call that brought it; it goes back when this goes.
class Kept {
public:
    explicit Kept(TenonKeptTensor *raw) : raw_(raw)
    {
        if (raw_ != nullptr) {
            tenon_host->view(raw_, &slot_);
        }
    }
    Kept(Kept &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)), slot_(other.slot_) {}
    Kept &operator=(Kept &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~Kept()
    {
        if (raw_ != nullptr) {
            tenon_host->release(raw_);
        }
    }
    const TenonKeptTensor *raw() const { return raw_; }
    const TenonSlot &slot() const { return slot_; }
    Dims dims() const { return dims_of(slot_); }
    template <class T> View<const T> view() const { return detail::view_as<const T>(slot_, "kept tensor", 0); }

private:
    TenonKeptTensor *raw_;
    TenonSlot slot_{};
};

} // namespace tenon

#endif // TENON_VIEW_HPP
