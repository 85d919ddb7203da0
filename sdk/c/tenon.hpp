// tenon.hpp - ops, kernels and devices in C++17 or later, over tenon_plugin.h.
//
//     #define TENON_PLUGIN_NAME "cube"
//     #define TENON_PLUGIN_VERSION "0.1.0"
//     #include "tenon.hpp"
//
//     template <class T> struct Cube {
//         void compute(tenon::Call &call) const
//         {
//             const auto x = call.input<T>(0);
//             const auto y = call.output_like<T>(0, x);
//             for (uint64_t at = 0; at < x.size(); at++) {
//                 y[at] = x[at] * x[at] * x[at];
//             }
//         }
//     };
//
//     TENON_REGISTER(
//         tenon::op("Cube").inputs("x: T").outputs("y: T").attrs("T: {float, half}").shape<tenon::same_shape>(),
//         tenon::kernels<Cube, float, tenon::half>("Cube", "T").numerics(tenon::ulps(2)));
//     TENON_PLUGIN();
//
// What it has, file by file:
//
//     tenon/element.hpp    element types: half, bfloat16, quantised ones; ElementOf<T>
//     tenon/view.hpp       View<T>: elements with their shape; Kept: a tensor that outlives its call
//     tenon/create.hpp     Create: the node that a kernel is made for; Attrs; constants
//     tenon/call.hpp       Call: inputs, outputs, lists, in place, scratch, parallel_for, strings, streams
//     tenon/shape.hpp      ShapeCall: shape functions
//     tenon/gradient.hpp   GradientCall: gradients of ops
//     tenon/state.hpp      Resource<T>: what a session keeps under a name
//     tenon/kernel.hpp     what a kernel's class may have: attributes, supports, prepack, flags
//     tenon/device.hpp     what a device's class has
//     tenon/register.hpp   op(), kernel(), kernels(), device(), knob(), and TENON_REGISTER
//
// Errors are thrown: a tenon::Error with its code, or any other exception, which becomes INTERNAL. Nothing that is
// thrown leaves the library. Include this after the headers of other libraries: see tenon_plugin.h.
#ifndef TENON_HPP
#define TENON_HPP

#if __cplusplus < 201703L
#error "tenon.hpp needs C++17 or later: build with -std=c++17"
#endif

#include "tenon/register.hpp"
#include "tenon/state.hpp"

#endif // TENON_HPP
