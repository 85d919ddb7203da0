// What a call brings: threads, scratch memory, lists, several outputs, strings, errors, completion later.
#include "zoo.hpp"

#include <stdexcept>

// The sum of the squares below n: each worker adds up its own, in scratch memory. Unit `fail_at` throws.
struct Parallel {
    int64_t fail_at;

    explicit Parallel(const tenon::Create &create) : fail_at(create.attr<int64_t>("fail_at")) {}

    void compute(tenon::Call &call) const
    {
        const auto n = static_cast<uint64_t>(call.scalar<int64_t>(0));
        int64_t *sums = call.scratch<int64_t>(call.parallelism());
        std::fill_n(sums, call.parallelism(), 0);
        call.parallel_for(n, 100.0, [&](uint64_t begin, uint64_t end, uint32_t worker) {
            for (uint64_t at = begin; at < end; at++) {
                if (static_cast<int64_t>(at) == fail_at) {
                    throw tenon::out_of_range("unit %" PRIu64 " fails", at);
                }
                sums[worker] += static_cast<int64_t>(at * at);
            }
        });
        call.output<int64_t>(0, {})[0] = std::accumulate(sums, sums + call.parallelism(), int64_t(0));
        call.parallel_each(n, 1.0, [](uint64_t) {});
    }
};

// Each tensor of a list plus the sum of all elements, and that sum.
static void lists(tenon::Call &call)
{
    const auto xs = call.input_list<float>(0);
    const auto ys = call.output_range(0);
    float total = 0;
    for (const auto &x : xs) {
        total = std::accumulate(x.begin(), x.end(), total);
    }
    for (uint32_t at = 0; at < ys.count; at++) {
        const auto y = call.output_like<float>(ys.first + at, xs[at]);
        std::transform(xs[at].begin(), xs[at].end(), y.begin(), [total](float value) { return value + total; });
    }
    call.output<float>(call.output_range(1).first, {})[0] = total;
}

static void lists_shape(tenon::ShapeCall &call)
{
    for (uint32_t at = 0; at < call.inputs(); at++) {
        call.set_output(at, call.input(at));
    }
    call.set_output(call.outputs() - 1, call.scalar());
}

static void reverse_strings(tenon::Call &call)
{
    const auto texts = call.strings(0);
    const auto y = call.string_output(0, call.dims(0));
    for (size_t at = 0; at < texts.size(); at++) {
        call.set_string(y[at], std::string(texts[at].rbegin(), texts[at].rend()));
    }
}

// Fails in each way there is.
struct Fails {
    std::string how;

    explicit Fails(const tenon::Create &create) : how(create.attr<std::string>("how"))
    {
        if (how == "refused") {
            throw tenon::invalid_argument("how: '%s' is refused", how.c_str());
        }
    }

    void compute(tenon::Call &call) const
    {
        if (how == "other type") {
            call.input<double>(0);
        } else if (how == "standard") {
            throw std::runtime_error("a standard exception");
        } else if (how == "memory") {
            throw std::bad_alloc();
        } else if (how == "anything") {
            throw 7;
        } else if (how == "missing") {
            call.input<float>(3);
        } else if (how == "scratch") {
            call.scratch<double>(UINT64_MAX / 2);
        }
        call.output_like<float>(0, call.input<float>(0));
        throw tenon::failed_precondition("%s after %d output", how.c_str(), 1);
    }
};

// Ends its call from a thread of its own.
struct Later {
    static constexpr uint32_t flags = TENON_KERNEL_FLAG_ASYNC;

    TenonCode compute(tenon::Call &call) const
    {
        std::thread([call] {
            call.complete([call] {
                const auto x = call.input<float>(0);
                if (x.empty()) {
                    throw tenon::invalid_argument("x: expected an element");
                }
                const auto y = call.output_like<float>(0, x);
                std::transform(x.begin(), x.end(), y.begin(), [](float value) { return 2 * value; });
            });
        }).detach();
        return TENON_PENDING;
    }
};

TENON_REGISTER(
    tenon::op("ZooCppParallel").inputs("n: int64").outputs("sum: int64").attrs("fail_at: int = -1"),
    tenon::kernel<Parallel>("ZooCppParallel"),
    tenon::op("ZooCppLists").inputs("xs: N * float").outputs("ys: N * float", "total: float").attrs("N: int >= 1")
        .shape<lists_shape>(),
    tenon::kernel<lists>("ZooCppLists"),
    tenon::op("ZooCppReverse").inputs("x: string").outputs("y: string").shape<tenon::same_shape>(),
    tenon::kernel<reverse_strings>("ZooCppReverse"),
    tenon::op("ZooCppFails").inputs("x: float").outputs("y: float").attrs("how: string").stateful(),
    tenon::kernel<Fails>("ZooCppFails"),
    tenon::op("ZooCppLater").inputs("x: float").outputs("y: float").shape<tenon::same_shape>(),
    tenon::kernel<Later>("ZooCppLater"));
