// Shape functions. What the kernels compute is of no interest.
#include "zoo.hpp"

static void nothing(tenon::Call &) { throw tenon::unimplemented("only shapes"); }

// a and b merged; their last dimension; the attribute's sizes before a; what input 1 has as a constant.
static void many(tenon::ShapeCall &call)
{
    const auto a = call.with_rank(call.input(0), 2);
    const auto merged = call.merge(a, call.input(1));
    call.set_output(0, merged);
    call.set_output(1, call.make_shape({ call.dim(merged, -1) }));
    auto dims = call.dims(a);
    const auto before = call.attr_list<int64_t>("before");
    for (auto size = before.rbegin(); size != before.rend(); ++size) {
        dims.insert(dims.begin(), call.make_dim(*size));
    }
    call.set_output(2, call.make_shape(dims));
    call.set_output(3, call.replace_dim(a, 0, call.make_dim(call.attr<int64_t>("first"))));
}

// A tensor of the sizes that input 0 has as values; an unknown one, a scalar, one of rank 3.
static void sized(tenon::ShapeCall &call)
{
    call.set_output(0, call.constant_as_shape(0));
    call.set_output(1, call.unknown());
    const auto values = call.constant_integers(0);
    call.set_output(2, values ? call.shape_of({ static_cast<int64_t>(values->size()), -1 }) : call.scalar());
    call.set_output(3, call.unknown_of_rank(call.rank(call.with_rank_at_least(call.input(1), 1)) ? 3 : 1));
}

TENON_REGISTER(
    tenon::op("ZooCppBroadcast").inputs("a: float", "b: float").outputs("y: float").shape<tenon::broadcast_shape>()
        .elementwise().refuses(TENON_REFUSES_SHAPES).symmetry(TENON_SYMMETRY_VALUES),
    tenon::kernel<nothing>("ZooCppBroadcast"),
    tenon::op("ZooCppShapes").inputs("a: float", "b: float").outputs("w: float", "x: float", "y: float", "z: float")
        .attrs("before: list(int) = [5, 6]", "first: int = 9").shape<many>(),
    tenon::kernel<nothing>("ZooCppShapes"),
    tenon::op("ZooCppSized").inputs("sizes: int32", "x: float").outputs("w: float", "x2: float", "y: float", "z: float")
        .shape<sized>(),
    tenon::kernel<nothing>("ZooCppSized"));
TENON_PLUGIN();
