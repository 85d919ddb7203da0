// What a kernel learns when it is made: attributes of each kind, constants, what it supports, packed forms; and state.
#include "zoo.hpp"

// The attributes as a text.
struct Attributes {
    std::string text;

    explicit Attributes(const tenon::Create &create)
    {
        text = std::to_string(create.attr<int64_t>("i")) + " " + std::to_string(create.attr<float>("f")) + " "
            + (create.attr<bool>("b") ? "true" : "false") + " " + create.attr<std::string>("s") + " "
            + std::string(create.attr<tenon::DType>("t").name()) + " "
            + tenon::Dims(create.attr<tenon::PartialShape>("shape").dims).text() + " ["
            + std::to_string(create.attr_list<int64_t>("ints").size()) + "] " + std::string(create.op()) + " "
            + std::string(create.input_type(0).name()) + tenon::Dims(create.input_shape(0).dims).text();
    }

    void compute(tenon::Call &call) const { call.set_string(call.string_output(0, {})[0], text); }
};

// x times a constant, which is packed as its square where it is one; matrices are left to others.
struct Packs {
    double factor = 0;

    static TenonSupport supports(const tenon::Create &create)
    {
        const auto shape = create.input_shape(0);
        return !shape.unknown_rank && shape.dims.size() == 2 ? TENON_SUPPORT_NO : TENON_SUPPORT_YES;
    }
    std::unique_ptr<double> prepack(uint32_t input, const TenonSlot &slot, uint64_t &bytes) const
    {
        if (input != 1) {
            return nullptr;
        }
        bytes = sizeof(double);
        const double value = *static_cast<const float *>(slot.data);
        return std::make_unique<double>(value * value);
    }
    void attach_packed(uint32_t, const double &packed) { factor = packed; }

    void compute(tenon::Call &call) const
    {
        const auto x = call.input<float>(0);
        const double by = factor != 0 ? factor : double(call.scalar<float>(1));
        const auto y = call.output_like<float>(0, x);
        std::transform(x.begin(), x.end(), y.begin(), [by](float value) { return static_cast<float>(value * by); });
    }
};

// The constant as the node has it when the kernel is made; -1 without.
struct Constant {
    float value;

    explicit Constant(const tenon::Create &create)
    {
        const auto constant = create.constant<float>(0);
        value = constant && !constant->empty() ? (*constant)[0] : -1;
    }

    void compute(tenon::Call &call) const { call.output<float>(0, {})[0] = value; }
};

struct Counter {
    static constexpr const char *resource_name = "zoo-cpp.Counter";
    std::atomic<int64_t> count{ 0 };
};

// Counts the calls of a session, and gives the counter; `read_counter` has it from there.
static void count_calls(tenon::Call &call)
{
    const auto counter = tenon::find_or_make<Counter>(call, "", "zoo", [] { return std::make_unique<Counter>(); });
    call.output<int64_t>(0, {})[0] = ++counter->count;
    tenon::output_resource(call, 1, counter);
}

static void read_counter(tenon::Call &call)
{
    call.output<int64_t>(0, {})[0] = tenon::input_resource<Counter>(call, 0)->count;
}

static void forget(tenon::Call &call)
{
    const bool there = bool(tenon::find<Counter>(call, "", "zoo"));
    tenon::remove<Counter>(call, "", "zoo");
    call.output<bool>(0, {})[0] = there;
}

// Gives the tensor that it was given in its last call; at first an empty vector.
struct Last {
    mutable std::mutex lock{};
    mutable std::optional<tenon::Kept> kept{};

    void compute(tenon::Call &call) const
    {
        const std::lock_guard<std::mutex> held(lock);
        if (kept) {
            call.output_kept(0, *kept);
        } else {
            call.output<float>(0, { 0 });
        }
        kept = call.keep(0);
    }
};

TENON_REGISTER(
    tenon::op("ZooCppAttributes").inputs("x: T").outputs("y: string")
        .attrs("T: type", "i: int", "f: float", "b: bool", "s: string", "t: type", "shape: shape", "ints: list(int)"),
    tenon::kernel<Attributes>("ZooCppAttributes"),
    tenon::op("ZooCppPacks").inputs("x: float", "w: float").outputs("y: float").shape<tenon::same_shape>(),
    tenon::kernel<Packs>("ZooCppPacks"),
    tenon::op("ZooCppConstant").inputs("x: float").outputs("y: float"), tenon::kernel<Constant>("ZooCppConstant"),
    tenon::op("ZooCppCount").outputs("count: int64", "counter: resource").stateful(),
    tenon::kernel<count_calls>("ZooCppCount"),
    tenon::op("ZooCppRead").inputs("counter: resource").outputs("count: int64").stateful(),
    tenon::kernel<read_counter>("ZooCppRead"), tenon::op("ZooCppForget").outputs("there: bool").stateful(),
    tenon::kernel<forget>("ZooCppForget"), tenon::op("ZooCppLast").inputs("x: float").outputs("y: float").stateful(),
    tenon::kernel<Last>("ZooCppLast"), tenon::knob("depth", TENON_KNOB_INT, "3", "Read by nobody."));
