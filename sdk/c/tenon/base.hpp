// tenon/base.hpp - what all of tenon.hpp needs: the C++ library, tenon_plugin.h, errors, shapes in numbers.
#ifndef TENON_BASE_HPP
#define TENON_BASE_HPP

// The C++ library comes first: what is declared after tenon_plugin.h is hidden.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../tenon_plugin.h"

// What is a plugin's own, whatever flags it is built with: the tables of two classes of one name would be one for all
// plugins of a process.
#define TENON_OWN __attribute__((visibility("hidden")))

namespace tenon TENON_OWN {

// An error with one of TensorFlow's canonical codes. The host puts node and op before its words.
class Error : public std::exception {
public:
    Error(TenonCode code, std::string message) : code_(code), message_(std::move(message)) {}
    TenonCode code() const noexcept { return code_; }
    const char *what() const noexcept override { return message_.c_str(); }

private:
    TenonCode code_;
    std::string message_;
};

// An error that the host has been told of: its code alone.
struct Reported {
    TenonCode code;
};

// Throws what the host refused.
inline void require(TenonCode code)
{
    if (code != TENON_OK) {
        throw Reported{ code };
    }
}

namespace detail {

inline std::string printed(const char *format, va_list arguments)
{
    char text[500];
    vsnprintf(text, sizeof text, format, arguments);
    return text;
}

// A text as printf makes it, cut after 499 bytes.
__attribute__((format(printf, 1, 2))) inline std::string text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::string text = printed(format, arguments);
    va_end(arguments);
    return text;
}

} // namespace detail

// Errors to be thrown, with words as printf's: `throw invalid_argument("axis: expected 0 or 1, found %d", axis)`.
#define TENON_ERROR(name, code) \
    __attribute__((format(printf, 1, 2))) inline Error name(const char *format, ...) \
    { \
        va_list arguments; \
        va_start(arguments, format); \
        std::string message = detail::printed(format, arguments); \
        va_end(arguments); \
        return Error(code, std::move(message)); \
    }
TENON_ERROR(invalid_argument, TENON_INVALID_ARGUMENT)
TENON_ERROR(not_found, TENON_NOT_FOUND)
TENON_ERROR(resource_exhausted, TENON_RESOURCE_EXHAUSTED)
TENON_ERROR(failed_precondition, TENON_FAILED_PRECONDITION)
TENON_ERROR(out_of_range, TENON_OUT_OF_RANGE)
TENON_ERROR(unimplemented, TENON_UNIMPLEMENTED)
TENON_ERROR(internal, TENON_INTERNAL)
TENON_ERROR(unavailable, TENON_UNAVAILABLE)
#undef TENON_ERROR

// The plugin's knobs, as a kernel's session or a device's runtime has them. Lent: those of a device as long as it is
// open, others during the call that has them.
class Knobs {
public:
    explicit Knobs(const TenonPluginContext *raw) : raw_(raw) {}
    // TenonKnobValue says which field counts.
    TenonKnobValue read(const char *name) const
    {
        TenonKnobValue value{};
        if (tenon_host->knob(raw_, tenon_str(name), &value) != TENON_OK) {
            throw internal("knob %s: the plugin declares none of that name", name);
        }
        return value;
    }

private:
    const TenonPluginContext *raw_;
};

// Dimensions that are lent: of a tensor, a list in braces, a vector.
class Dims {
public:
    Dims() : data_(nullptr), rank_(0) {}
    Dims(const int64_t *data, size_t rank) : data_(data), rank_(static_cast<uint32_t>(rank)) {}
    Dims(std::initializer_list<int64_t> dims) : Dims(dims.begin(), dims.size()) {}
    Dims(const std::vector<int64_t> &dims) : Dims(dims.data(), dims.size()) {}
    uint32_t rank() const { return rank_; }
    const int64_t *data() const { return data_; }
    const int64_t *begin() const { return data_; }
    const int64_t *end() const { return data_ + rank_; }
    // A dimension, also counted from the end: -1 is the last one.
    int64_t operator[](int64_t at) const { return data_[at < 0 ? at + rank_ : at]; }
    friend bool operator==(const Dims &a, const Dims &b)
    {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }
    friend bool operator!=(const Dims &a, const Dims &b) { return !(a == b); }
    // As [2,3].
    std::string text() const
    {
        std::string text = "[";
        for (const int64_t dim : *this) {
            text.append(text.size() > 1 ? "," : "").append(dim < 0 ? "?" : std::to_string(dim));
        }
        return text.append("]");
    }

private:
    const int64_t *data_;
    uint32_t rank_;
};

// A text of the host's.
inline std::string_view view_of(TenonStr text)
{
    return std::string_view(reinterpret_cast<const char *>(text.ptr), text.len);
}

// A text for the host, which borrows it.
inline TenonStr str_of(std::string_view text)
{
    return TenonStr{ reinterpret_cast<const uint8_t *>(text.data()), text.size() };
}

namespace detail {

// Runs `body`; what it throws goes to `report(code, message)`. Nothing that is thrown leaves the library.
template <class Body, class Report> TenonCode guarded(Body &&body, Report &&report) noexcept
{
    try {
        if constexpr (std::is_same_v<decltype(body()), TenonCode>) {
            return body();
        } else {
            body();
            return TENON_OK;
        }
    } catch (const Reported &reported) {
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

// As guarded, where there is a sink for the message; without one the code is all that the host hears.
template <class Body> TenonCode guarded_by(TenonSink *sink, Body &&body) noexcept
{
    return guarded(std::forward<Body>(body), [sink](TenonCode code, const char *text) {
        return sink != nullptr ? tenon_report(sink, code, "%s", text) : code;
    });
}

} // namespace detail
} // namespace tenon

#endif // TENON_BASE_HPP
