// tenon/gradient.hpp - gradients of ops: nodes that compute the gradients of inputs from those of outputs.
#ifndef TENON_GRADIENT_HPP
#define TENON_GRADIENT_HPP

#include "shape.hpp"

#include <initializer_list>
#include <string>

namespace tenon TENON_OWN {

// A tensor of the graph during one run of a gradient.
using Value = TenonGraphValue;

// One run of a gradient: a function `void(tenon::GradientCall &)` that is given to op(...).gradient<function>(). What it
// throws refuses the node.
class GradientCall {
public:
    GradientCall(TenonGradientCall *raw, const TenonGradientTable *table) : raw_(raw), table_(table) {}
    TenonGradientCall *raw() const { return raw_; }
    Attrs attrs() const { return Attrs(table_->attrs(raw_)); }
    template <class T> T attr(const char *name) const { return attrs().get<T>(name); }
    uint32_t inputs() const { return table_->input_count(raw_); }
    uint32_t outputs() const { return table_->output_count(raw_); }
    Value input(uint32_t index) const { return table_->input(raw_, index); }
    Value output(uint32_t index) const { return table_->output(raw_, index); }
    // Whether the gradient of an input is wanted; it need not be made otherwise.
    bool wants(uint32_t input) const { return table_->is_wanted(raw_, input) != 0; }
    // The gradient of an output as a tensor: zeros where there is none.
    Value gradient(uint32_t output) const
    {
        Value value = TENON_GRAPH_VALUE_NONE;
        check(table_->dense_gradient(raw_, output, &value));
        return value;
    }
    TenonDType dtype(Value value) const { return table_->dtype(raw_, value); }
    // Adds a node of these inputs and returns its first output. Attributes that the inputs determine or that have a
    // default need not be there; `copied` names attributes that are copied from the node whose gradient this is.
    Value op(const char *op, std::initializer_list<Value> inputs, std::initializer_list<const char *> copied = {}) const
    {
        std::vector<TenonStr> names;
        for (const char *name : copied) {
            names.push_back(tenon_str(name));
        }
        TenonGradientNode node{};
        node.struct_size = sizeof node;
        node.op = tenon_str(op);
        node.inputs = inputs.begin();
        node.input_count = inputs.size();
        node.copied = TenonStrs{ names.data(), names.size() };
        Value first = TENON_GRAPH_VALUE_NONE;
        check(table_->add(raw_, &node, &first, 1, nullptr));
        return first;
    }
    // Sets the gradient of an input to a tensor of its shape. An input that is not set has none.
    void set(uint32_t input, Value gradient) const
    {
        const TenonGradientParts parts = { TENON_GRADIENT_KIND_DENSE, 0, gradient, TENON_GRAPH_VALUE_NONE,
                                           TENON_GRAPH_VALUE_NONE };
        check(table_->set(raw_, input, &parts));
    }

private:
    // The host has kept its own message; it is not replaced.
    struct Refused {
        TenonCode code;
    };
    static void check(TenonCode code)
    {
        if (code != TENON_OK) {
            throw Refused{ code };
        }
    }
    TenonGradientCall *raw_;
    const TenonGradientTable *table_;

public:
    // Runs a gradient over the call; for the entry of an op.
    template <class F> static TenonCode run(F function, TenonGradientCall *raw, const TenonGradientTable *table)
    {
        TenonCode refused = TENON_OK;
        const TenonCode code = detail::guarded(
            [&] {
                GradientCall call(raw, table);
                try {
                    function(call);
                } catch (const Refused &error) {
                    refused = error.code;
                }
            },
            [&](TenonCode failed, const char *text) { return table->fail(raw, failed, tenon_str(text)); });
        return refused != TENON_OK ? refused : code;
    }
};

namespace detail {

template <auto function>
TenonCode run_gradient(const TenonHost *, TenonGradientCall *raw, const TenonGradientTable *table)
{
    return GradientCall::run([](GradientCall &call) { function(call); }, raw, table);
}

} // namespace detail

} // namespace tenon

#endif // TENON_GRADIENT_HPP
