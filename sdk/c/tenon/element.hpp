// tenon/element.hpp - the element types of tensors as types of C++.
#ifndef TENON_ELEMENT_HPP
#define TENON_ELEMENT_HPP

#include "base.hpp"

namespace tenon TENON_OWN {

// A float of 16 bits. It becomes a float by itself, so that arithmetic is done in float; back it goes by an assignment
// or when it is asked for, `half(x)`, to the nearest value, ties to even.
struct half {
    uint16_t bits;

    half() = default;
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
    explicit half(N value) noexcept : bits(tenon_half_of(static_cast<double>(value)))
    {
    }
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>> half &operator=(N value) noexcept
    {
        return *this = half(value);
    }
    operator float() const noexcept { return tenon_float_of_half(bits); }
};

// As half, with the exponent of a float and 7 bits behind the point.
struct bfloat16 {
    uint16_t bits;

    bfloat16() = default;
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
    explicit bfloat16(N value) noexcept : bits(tenon_bfloat16_of(static_cast<double>(value)))
    {
    }
    explicit bfloat16(float value) noexcept : bits(tenon_bfloat16_of_float(value)) {}
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>> bfloat16 &operator=(N value) noexcept
    {
        return *this = bfloat16(value);
    }
    operator float() const noexcept { return tenon_float_of_bfloat16(bits); }
};

// The quantised types: their integers, under names of their own.
enum class qint8 : int8_t {};
enum class quint8 : uint8_t {};
enum class qint16 : int16_t {};
enum class quint16 : uint16_t {};
enum class qint32 : int32_t {};

// The element type of a C++ type. An integer reads and writes the quantised type of its size too.
template <class T> struct ElementOf;
template <TenonDType dtype, TenonDType also = dtype> struct Element {
    static constexpr TenonDType value = dtype;
    static constexpr bool holds(TenonDType of) { return of == dtype || of == also; }
};
template <> struct ElementOf<float> : Element<TENON_FLOAT> {};
template <> struct ElementOf<double> : Element<TENON_DOUBLE> {};
template <> struct ElementOf<half> : Element<TENON_HALF> {};
template <> struct ElementOf<bfloat16> : Element<TENON_BFLOAT16> {};
template <> struct ElementOf<bool> : Element<TENON_BOOL> {};
template <> struct ElementOf<int8_t> : Element<TENON_INT8, TENON_QINT8> {};
template <> struct ElementOf<int16_t> : Element<TENON_INT16, TENON_QINT16> {};
template <> struct ElementOf<int32_t> : Element<TENON_INT32, TENON_QINT32> {};
template <> struct ElementOf<int64_t> : Element<TENON_INT64> {};
template <> struct ElementOf<uint8_t> : Element<TENON_UINT8, TENON_QUINT8> {};
template <> struct ElementOf<uint16_t> : Element<TENON_UINT16, TENON_QUINT16> {};
template <> struct ElementOf<uint32_t> : Element<TENON_UINT32> {};
template <> struct ElementOf<uint64_t> : Element<TENON_UINT64> {};
template <> struct ElementOf<std::complex<float>> : Element<TENON_COMPLEX64> {};
template <> struct ElementOf<std::complex<double>> : Element<TENON_COMPLEX128> {};
template <> struct ElementOf<qint8> : Element<TENON_QINT8> {};
template <> struct ElementOf<quint8> : Element<TENON_QUINT8> {};
template <> struct ElementOf<qint16> : Element<TENON_QINT16> {};
template <> struct ElementOf<quint16> : Element<TENON_QUINT16> {};
template <> struct ElementOf<qint32> : Element<TENON_QINT32> {};
template <> struct ElementOf<TenonStringElement> : Element<TENON_STRING> {};

// The type in which arithmetic on elements of T is done: float for the floats of 16 bits, T itself otherwise.
template <class T> struct WideOf { using Type = T; };
template <> struct WideOf<half> { using Type = float; };
template <> struct WideOf<bfloat16> { using Type = float; };
template <class T> using Wide = typename WideOf<T>::Type;

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2 && sizeof(bool) == 1, "elements of tensors");
static_assert(std::is_trivial_v<half> && std::is_trivial_v<bfloat16>, "elements of tensors");

// The name of an element type, as ops write it; empty for a number that names none.
constexpr std::string_view name_of(TenonDType dtype)
{
    constexpr std::string_view names[] = {
        "", "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8",
        "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource", "variant",
        "uint32", "uint64",
    };
    return dtype < sizeof names / sizeof names[0] ? names[dtype] : std::string_view();
}

} // namespace tenon

#endif // TENON_ELEMENT_HPP
