// The ops that TensorFlow's own tests of its C API register in C++ in their process, as a plugin. Nothing computes them but one kernel.
// With LOADED it is the library that one of them loads.
#ifdef LOADED
#define TENON_PLUGIN_NAME "theirs_loaded"
#else
#define TENON_PLUGIN_NAME "theirs"
#endif
#define TENON_PLUGIN_VERSION "0.1.0"
#include "tenon.hpp"

static void nothing(tenon::ShapeCall &) {}

#ifdef LOADED
TENON_REGISTER(tenon::op("TestCApi1").shape<nothing>().summary("does nothing"));
#else
static void same(tenon::ShapeCall &call) { call.set_output(0, call.input(0)); }

static void number(tenon::ShapeCall &call) { call.set_output(0, call.unknown()); }

static void dummy(tenon::Call &) {}

TENON_REGISTER(tenon::op("TestCApi").shape<nothing>().summary("does nothing"),
               tenon::op("CustomOp").outputs("output: float").attrs("index: int").shape<number>().summary("a number"),
               tenon::op("TestOpWithNoGradient").inputs("x: T").outputs("y: T").attrs("T: {float, double}").shape<same>()
                   .summary("has no gradient"),
               tenon::op("TestOpWithSingleKernel").inputs("a: float", "b: float").outputs("o: float").shape<number>()
                   .summary("has one kernel"),
               tenon::kernel<dummy>("TestOpWithSingleKernel"));

#define OF_ATTRIBUTE(type)                                                                                             \
    tenon::op("CApiAttributesTestOp" #type).attrs("v: " #type).shape<nothing>().summary("has an attribute"),           \
        tenon::op("CApiAttributesTestOpList" #type).attrs("v: list(" #type ")").shape<nothing>().summary("has a list")

TENON_REGISTER(OF_ATTRIBUTE(string), OF_ATTRIBUTE(int), OF_ATTRIBUTE(float), OF_ATTRIBUTE(bool), OF_ATTRIBUTE(type),
               OF_ATTRIBUTE(shape), OF_ATTRIBUTE(tensor));
#endif

TENON_PLUGIN();
