//! The macros: const builders, one entry in the list, one record in the manifest.

/// The place of a registration.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    () => {
        $crate::reg::Site { krate: env!("CARGO_PKG_NAME"), file: file!(), line: line!() }
    };
}

/// Submits one registration and writes its manifest record.
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($variant:ident, $reg:expr) => {
        const _: () = {
            const REG: $crate::reg::Registration = $crate::reg::Registration::$variant($reg);
            const LEN: usize = $crate::reg::manifest::record_len(&REG);
            #[used]
            #[cfg_attr(target_os = "linux", unsafe(link_section = "tenon_manifest"))]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__tenon"))]
            #[cfg_attr(windows, unsafe(link_section = ".tenon"))]
            static RECORD: [u8; LEN] = $crate::reg::manifest::record::<LEN>(&REG);
            $crate::__private::inventory::submit! { REG }
        };
    };
}

/// Registers an op with the list of this library.
///
/// ```
/// use tenon_author::{ShapeContext, ShapeResult, register_op};
///
/// fn same_shape(c: &ShapeContext<'_>) -> ShapeResult {
///     c.set_output(0, c.input(0))
/// }
///
/// register_op!(
///     "Twice",
///     inputs = &["x: T"],
///     outputs = &["y: T"],
///     attrs = &["T: {float, double}"],
///     shape = same_shape,
///     summary = "Doubles every element.",
/// );
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_op {
    ($name:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__submit!(Op, $crate::reg::OpReg::new($name, $crate::__site!())$(.$key($value))*);
    };
}

/// Registers a kernel, for one or several element types, with the list of this library.
///
/// The forms, each followed by any of [`reg::KernelReg`](crate::reg::KernelReg)'s setters as
/// `key = value`:
/// - `"Op" on "DEVICE": Type` or `fn function`: for all types that the op allows;
/// - `"Op" on "DEVICE": Type<T> for "T" in [f32, f64]` or `fn function<T> for ...`: one kernel for each.
///
/// ```
/// use tenon_author::{ComputeContext, register_kernel};
/// use tenon_framework::{KernelError, element::Number};
///
/// fn twice<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let x = c.input::<T>(0)?;
///     let y = c.output::<T>(0, x.dims)?;
///     for (y, x) in y.data.iter_mut().zip(x.data) {
///         *y = x.add(*x);
///     }
///     Ok(())
/// }
///
/// register_kernel!("Twice" on "CPU": fn twice<T> for "T" in [f32, f64], priority = 5);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_kernel {
    ($op:literal on $device:literal : fn $f:ident<T> for $attr:literal in [$($ty:ty),+ $(,)?] $($options:tt)*) => {
        $crate::__kernels!{@fn $op, $device, $f, $attr, {$($options)*}, $($ty),+}
    };
    ($op:literal on $device:literal : $k:ident<T> for $attr:literal in [$($ty:ty),+ $(,)?] $($options:tt)*) => {
        $crate::__kernels!{@type $op, $device, $k, $attr, {$($options)*}, $($ty),+}
    };
    ($op:literal on $device:literal : fn $f:path $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__submit!(Kernel,
            $crate::reg::KernelReg::function($op, $device, $f, $crate::__site!())$(.$key($value))*);
    };
    ($op:literal on $device:literal : $k:ty $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__submit!(Kernel,
            $crate::reg::KernelReg::new($op, $device, $crate::__kernel_table!($k), $crate::__site!())
                $(.$key($value))*);
    };
}

/// Says of every kernel that this crate registers that it [checks its shapes](crate::reg::KernelReg::checks_shapes):
/// once in a crate. The host then does not run the shape function beside its calls.
#[macro_export]
macro_rules! kernels_check_shapes {
    () => {
        $crate::__private::inventory::submit! { $crate::reg::CheckingCrate(env!("CARGO_PKG_NAME")) }
    };
}

/// The table of a kernel type, with the entries of the traits that it implements.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernel_table {
    ($k:ty) => {{
        #[allow(
            unused_imports,
            reason = "the traits count where the type has no constant of its own"
        )]
        use $crate::{Optional, WithoutPrepack as _, WithoutSupports as _};
        const TABLE: &$crate::abi::KernelTable =
            &$crate::type_table::<$k>(Optional::<$k>::PREPACK, Optional::<$k>::SUPPORTS);
        TABLE
    }};
}

/// Peels one element type after the other: options and types cannot be repeated across each other.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernels {
    (@$form:ident $op:literal, $device:literal, $k:ident, $attr:literal, $options:tt, $($ty:ty),+) => {
        $($crate::__kernels!{@one $form $op, $device, $k, $attr, $ty, $options})+
    };
    (@one fn $op:literal, $device:literal, $f:ident, $attr:literal, $ty:ty, {$(, $key:ident = $value:expr)* $(,)?}) => {
        $crate::__submit!(Kernel,
            $crate::reg::KernelReg::function($op, $device, $f::<$ty>, $crate::__site!())
                .element::<$ty>($attr)$(.$key($value))*);
    };
    (@one type $op:literal, $device:literal, $k:ident, $attr:literal, $ty:ty, {$(, $key:ident = $value:expr)* $(,)?}) => {
        $crate::__submit!(Kernel,
            $crate::reg::KernelReg::new($op, $device, $crate::__kernel_table!($k<$ty>), $crate::__site!())
                .element::<$ty>($attr)$(.$key($value))*);
    };
}

/// Registers a device type: `register_device!("ACCEL": Accel, priority = 10)`, where `Accel` implements
/// [`DeviceKind`](crate::device::DeviceKind). The registration finds which of the traits for further roles the type
/// implements: see [`device`](crate::device).
#[macro_export]
macro_rules! register_device {
    ($name:literal : $device:ty $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__submit!(Device, {
            $crate::__registered!(__Registered: $device);
            $crate::reg::DeviceReg::of::<__Registered>($name, $crate::__site!())$(.$key($value))*
        });
    };
}

/// A type that stands for a device type with the roles that it has.
#[doc(hidden)]
#[macro_export]
macro_rules! __registered {
    ($registered:ident : $device:ty) => {
        #[allow(
            unused_imports,
            reason = "the traits count where the type has no constant of its own"
        )]
        use $crate::device::{
            WithStreamType as _, WithoutCapture as _, WithoutEvents as _, WithoutKind as _,
            WithoutMemory as _, WithoutNative as _, WithoutStreams as _, WithoutTimers as _,
        };
        struct $registered;
        impl $crate::device::Registered for $registered {
            type Device = $device;
            const MEMORY: $crate::abi::DeviceTable = $crate::device::Roles::<$device>::MEMORY;
            const STREAMS: $crate::abi::DeviceTable = $crate::device::Roles::<$device>::STREAMS;
            const EVENTS: $crate::abi::DeviceTable = $crate::device::Roles::<$device>::EVENTS;
            const TIMERS: ::core::option::Option<$crate::abi::ExtTimers> =
                $crate::device::Roles::<$device>::TIMERS;
            const CAPTURE: ::core::option::Option<$crate::abi::ExtCapture> =
                $crate::device::Roles::<$device>::CAPTURE;
            const NATIVE: ::core::option::Option<$crate::abi::ExtNative> =
                $crate::device::Roles::<$device>::NATIVE;
            const HAS_STREAM_TYPE: bool = $crate::device::Roles::<$device>::IS_KIND
                && $crate::device::Roles::<$device>::HAS_STREAM_TYPE;
        }
    };
}

/// Registers a knob: `register_knob!("fail_after": INT = "0", "Fails after this number of commands; 0 for never.")`.
#[macro_export]
macro_rules! register_knob {
    ($name:literal : $kind:ident = $default:literal, $help:literal $(,)?) => {
        $crate::__submit!(
            Knob,
            $crate::reg::KnobReg::new(
                $name,
                $crate::abi::KnobKind::$kind,
                $default,
                $help,
                $crate::__site!()
            )
        );
    };
}

/// Registers a fusion: a pattern of ops, and the op that does the same, in the notation of
/// [`fusion`](tenon_framework::fusion). It applies where a device has a kernel for the result.
///
/// ```
/// use tenon_author::register_fusion;
///
/// register_fusion!(
///     "matmul_bias": "BiasAdd(MatMul(a, b; transpose_a = $ta, transpose_b = $tb), bias)"
///         => "_FusedMatMul(a, b, bias; transpose_a = $ta, transpose_b = $tb, fused_ops = ['BiasAdd'])",
///     where = ["same_type(a, bias)"],
/// );
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_fusion {
    ($name:literal : $pattern:expr => $result:expr $(, where = [$($condition:expr),* $(,)?])? $(,)?) => {
        $crate::__submit!(Extension, $crate::reg::fusion(
            |give| $crate::reg::give_fusion(give, [$name, $pattern, $result], &[$($($condition),*)?], $crate::__site!()),
            $crate::__site!()
        ));
    };
    ($($other:tt)*) => {
        ::core::compile_error!("expected `\"name\": \"pattern\" => \"result\"`, and what must hold as `where = [\"condition\"]` after a comma");
    };
}

/// Registers a pass over graphs: its name in snake_case, a sentence, and a function over
/// [`PassContext`](crate::PassContext). The knob `pass_<name>` of the library switches it. With `late` before
/// the name, it runs when the passes before it have nothing left to do. A pass answers for the errors of nodes that
/// nothing reads any more by its doing: they go, so what it put there must fail where they do.
///
/// ```
/// use tenon_author::{PassContext, register_pass};
/// use tenon_framework::KernelError;
///
/// fn one_relu(graph: &PassContext<'_>) -> Result<(), KernelError> {
///     for node in graph.nodes() {
///         let inner = graph.source(node, 0).filter(|inner| graph.op(*inner) == "Relu");
///         if graph.op(node) == "Relu" && graph.is_rewritable(node) && inner.is_some() {
///             graph.bypass(node, 0)?;
///             graph.note(node, "does nothing after another Relu");
///         }
///     }
///     Ok(())
/// }
///
/// register_pass!("one_relu": one_relu, "Takes Relu of Relu for one.");
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_pass {
    (late $name:literal : $run:path, $help:literal $(,)?) => {
        $crate::__pass!($name, $run, $help, true);
    };
    ($name:literal : $run:path, $help:literal $(,)?) => {
        $crate::__pass!($name, $run, $help, false);
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "expected `\"name\": function, \"what it does\"`, or that after `late`"
        );
    };
}

/// Registers the gradient of an op that the same library registers: a function over
/// [`GradientContext`](crate::GradientContext) that adds nodes to the graph, or a closure that captures nothing.
///
/// ```
/// use tenon_author::{GradientContext, register_gradient};
/// use tenon_framework::KernelError;
///
/// fn cube_gradient(c: &GradientContext<'_>) -> Result<(), KernelError> {
///     let x = c.input(0);
///     let slope = c.scale(c.unary("Square", x)?, 3.0)?;
///     c.set(0, c.mul(c.gradient(0)?, slope)?)
/// }
///
/// register_gradient!("Cube", cube_gradient);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_gradient {
    ($op:expr, $run:expr $(,)?) => {
        const _: () = {
            const RUN: $crate::GradientFunction = $run;
            unsafe extern "C" fn run(
                host: *const $crate::abi::Host,
                call: *mut $crate::abi::GradientCall,
                table: *const $crate::abi::GradientTable,
            ) -> $crate::abi::Code {
                // SAFETY: the host gives what a gradient is given.
                unsafe { $crate::enter_gradient(host, call, table, RUN) }
            }
            $crate::__private::inventory::submit! {
                $crate::reg::GradientReg::new($op, run, $crate::__site!())
            }
        };
    };
    ($($other:tt)*) => {
        ::core::compile_error!("expected `\"Op\", function`");
    };
}

/// Registers a type of variants, so that its values can be decoded by the name of the type, also in a process that has
/// not made one: `register_variant!(Span);`. See [`VariantValue`](crate::VariantValue).
#[macro_export]
macro_rules! register_variant {
    ($type:ty $(,)?) => {
        const _: () = {
            $crate::__submit!(
                Extension,
                $crate::reg::variant(
                    |give| $crate::reg::give_variant::<$type>(give, $crate::__site!()),
                    $crate::__site!()
                )
            );
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __pass {
    ($name:literal, $run:path, $help:literal, $late:literal) => {
        const _: () = {
            unsafe extern "C" fn run(
                host: *const $crate::abi::Host,
                call: *mut $crate::abi::PassCall,
                table: *const $crate::abi::PassTable,
            ) -> $crate::abi::Code {
                // SAFETY: the host gives what a pass is given.
                unsafe { $crate::enter_pass(host, call, table, $run) }
            }
            $crate::__submit!(
                Extension,
                $crate::reg::pass(
                    |give| $crate::reg::give_pass(
                        give,
                        $name,
                        $help,
                        run,
                        $late,
                        $crate::__site!()
                    ),
                    $crate::__site!()
                )
            );
        };
        $crate::__submit!(
            Knob,
            $crate::reg::KnobReg::new(
                concat!("pass_", $name),
                $crate::abi::KnobKind::BOOL,
                "true",
                concat!("Whether the pass runs: ", $help),
                $crate::__site!()
            )
        );
    };
}

/// Registers something of a kind that the tables have no entry for: `register_extension!(NAME: Type)`, where
/// `NAME` is a static of a type that [`extension_link!`](crate::extension_link) declared. A host that does not
/// know the tag goes on without it.
#[macro_export]
macro_rules! register_extension {
    ($link:ident : $ty:ty $(,)?) => {
        $crate::__submit!(
            Extension,
            $crate::reg::ExtensionReg::of::<$ty>(&$link, $crate::__site!())
        );
    };
}
