//! Unsafe code stands in named places. A new place is a new row, with its reason, for a reviewer to see.

use super::tree::{self, Exception};
use proc_macro2::{Delimiter, TokenTree};

const fn place(place: &'static str, reason: &'static str) -> Exception {
    Exception { place, reason }
}

#[rustfmt::skip]
const PLACES: &[Exception] = &[
    place("core/abi/src/", "the boundary itself: entries are unsafe functions, and readers of pointers with lengths"),
    place("core/capi/src/", "functions that C calls: handles, texts and arrays come as pointers, and memory goes both ways"),
    place("core/framework/src/attr/from_attr.rs", "reads values from the views of the boundary"),
    place("core/framework/src/attr_view.rs", "reads the attribute tables that the host lends to a kernel"),
    place("core/author/src/", "the safe face of the entries that authors' code calls, and the entries that call it; registrations"),
    place("core/framework/src/device/", "entries of a device that the host calls through its table"),
    place("core/framework/src/element.rs", "names the types whose every bit pattern is a value"),
    place("core/framework/src/infer/", "shape functions run through their table, in the host as in a plugin"),
    place("core/framework/src/knob.rs", "reads a knob's definition from its table"),
    place("core/framework/src/knob/tests.rs", "as knob.rs"),
    place("core/framework/src/linked.rs", "hands registrations to the host's registrar"),
    place("core/framework/src/op/", "reads an op's definition from its table"),
    place("core/framework/src/pages.rs", "memory of the global allocator, and its lines as numbers"),
    place("core/framework/src/gradient/", "the entries that the gradient of an op calls"),
    place("core/framework/src/pass/", "the entries that a pass of a library calls"),
    place("core/framework/src/plugin/", "the host's table, as this library was given it"),
    place("core/framework/src/registry/fusion.rs", "reads a fusion's texts from its link"),
    place("core/framework/src/registry/kernel_def.rs", "reads a kernel's definition from its table"),
    place("core/framework/src/registry/pass.rs", "reads a pass's definition from its link"),
    place("core/framework/src/registry/plugin.rs", "reads a device type's definition from its table"),
    place("core/framework/src/registry/variant.rs", "reads a variant's type from its table"),
    place("core/framework/src/registry/transaction.rs", "takes definitions in table form"),
    place("core/framework/src/registry/remote.rs", "stands for entries of a kernel's table"),
    place("core/framework/src/registry/tests/", "drive the registry through tables, as a plugin does"),
    place("core/framework/src/resource.rs", "reference counts of resources cross the boundary as pointers"),
    place("core/framework/src/testing.rs", "a host's table without a host, for tests of shape functions"),
    place("core/framework/src/tensor/", "buffers: memory, its elements' types, and reference counts that cross the boundary"),
    place("core/host/src/bools.rs", "makes bytes that a plugin wrote bools, in place"),
    place("core/host/src/call/", "frames of calls, which kernels read and write through pointers"),
    place("core/host/src/cancel.rs", "calls the callbacks that plugins register"),
    place("core/host/src/cancel/", "models of it"),
    place("core/host/src/context.rs", "a plugin's context is a counted pointer of the host's"),
    place("core/host/src/devices/", "calls the entries of a plugin's device"),
    place("core/host/src/entries.rs", "the table of services that plugins call"),
    place("core/host/src/services/", "bodies of that table"),
    place("core/host/src/exit.rs", "is called at the end of a process, and ends it"),
    place("core/host/src/fpu.rs", "reads and sets the control register of the floating-point unit"),
    place("core/host/src/inspect.rs", "calls a device type's probe"),
    place("core/host/src/instance.rs", "makes kernels, keeps their states, calls them without a graph"),
    place("core/host/src/instance/", "as instance.rs"),
    place("core/host/src/kernels/", "kernels of the host's own look behind the record of a call"),
    place("core/host/src/loader/", "opens libraries, reads their symbols, initialises their modules"),
    place("core/host/src/memory/", "allocators and copies"),
    place("core/host/src/permissions.rs", "asks the system who runs this process"),
    place("core/host/src/pool.rs", "jobs and loops cross threads as pointers, without an allocation each"),
    place("core/host/src/pool/", "as pool.rs"),
    place("core/host/src/record.rs", "a plugin's handle is a pointer to the host's record of it"),
    place("core/host/src/registrar.rs", "the table that a plugin registers through"),
    place("core/host/src/resources/", "resources of plugins: their pointers, their destructors"),
    place("core/host/src/sink.rs", "takes messages from a plugin"),
    place("core/host/src/statics.rs", "registers the kernels that are linked in, through the same table"),
    place("core/host/src/testing/", "a device and ops that stand in for a plugin's in the unit tests"),
    place("core/host/src/variants.rs", "calls the entries of a variant's type"),
    place("core/isolate/src/", "memory that two processes see, and the entries of kernels on both sides of it"),
    place("core/cluster/src/plane/reader.rs", "counts bytes that a lane wrote to a tensor's memory"),
    place("core/cluster/src/plane/shm/ring.rs", "memory that two processes see"),
    place("core/runtime/src/executor/", "value slots without locks: a node's slots belong to the thread that runs it"),
    place("core/runtime/src/plan/", "flat arrays indexed without checks, validated when the plan is built"),
    place("benches/benches/bench_overhead.rs", "times a kernel's entry with a prepared call"),
    place("benches/benches/isolate.rs", "fills fresh tensors"),
    place("benches/benches/dispatch_linked.rs", "times a kernel's body with a prepared call"),
    place("benches/benches/dispatch_plugin.rs", "times a kernel's entry with a prepared call"),
    place("sdk/author/src/", "the doors, and array views of a call's memory"),
    place("sdk/benchkit/src/counters/linux.rs", "opens perf events, which no library of ours has"),
    place("sdk/benchkit/src/roofline/", "probes of the machine: streaming stores and loops of vector instructions"),
    place("sdk/python/src/arrays.rs", "arrays of NumPy are read and made through its C interface"),
    place("sdk/python/src/blocking.rs", "registers a function for children of the process"),
    place("sdk/python/src/custom/gradient.rs", "the host calls the gradient of an op through an entry of C"),
    place("sdk/python/src/dlpack.rs", "capsules of DLPack are pointers to structs of C"),
    place("sdk/python/src/dtypes.rs", "descriptors of NumPy's types are structs of C"),
    place("sdk/python/src/interrupt.rs", "puts a handler of a signal in front of Python's"),
    place("sdk/python/src/lend.rs", "memory of Python's objects and of kept tensors as memory of tensors"),
    place("sdk/python/src/tensor.rs", "views of the buffer protocol are structs of C"),
    place("sdk/ranges/src/", "calls the functions of an attached profiler, which takes its tables and handles as pointers"),
    place("sdk/testkit/src/check/device/lane.rs", "streams, events and copies that hold what they use until it is idle"),
    place("sdk/testkit/src/check/fault.rs", "a signal handler that tells of a crash"),
    place("sdk/testkit/src/check/heap.rs", "figures and settings of the C library's heap"),
    place("plugins/accel/src/device.rs", "the simulated device's copies take host addresses"),
    place("plugins/accel/src/device_tests.rs", "as device.rs"),
    place("plugins/accel/src/kernels.rs", "a kernel finds its device behind the call's pointer"),
    place("plugins/accel/src/memory.rs", "views of device memory as bytes and as numbers"),
    place("plugins/accel/src/test_support.rs", "stands in for the host's notification"),
    place("plugins/accel/tests/", "a host of a few entries, to drive the device alone"),
    place("plugins/vectors/src/arch.rs", "calls functions compiled for CPU features that were found"),
    place("plugins/vectors/src/vector.rs", "vectors of floats, in loops compiled for their CPU features"),
    place("plugins/vectors/src/narrow.rs", "calls conversions by instructions that the CPU was found to have"),
    place("plugins/vectors/src/narrow/f16c.rs", "the instructions that convert halves"),
    place("plugins/vectors/src/split.rs", "disjoint parts of one output for the threads of a loop"),
    place("plugins/cpu/src/stream.rs", "stores past the caches"),
    place("plugins/cpu/src/panels.rs", "memory for packed panels, aligned to vectors"),
    place("plugins/cpu/src/kernels/array.rs", "copies elements as words of their size"),
    place("plugins/cpu/src/kernels/array/concat.rs", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/array/transpose.rs", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/array/turn.rs", "squares of a matrix by vector instructions"),
    place("plugins/cpu/src/kernels/cast.rs", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/elementwise.rs", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/fused/descent.rs", "a locked variable is the target of a product"),
    place("plugins/cpu/src/kernels/fused/layer_norm_grad.rs", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/math_binary/arithmetic.rs", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/reduction/", "writes disjoint parts, by split.rs"),
    place("plugins/cpu/src/kernels/nn/", "writes disjoint parts, by split.rs; windows through pointers"),
    place("plugins/cpu/src/kernels/linalg/", "matrix products: tiles through pointers, by CPU feature"),
    place("plugins/cuda/src/compile/", "NVRTC's and the driver's calls around modules; launches of their entries"),
    place("plugins/cuda/src/cublaslt/", "cuBLASLt's calls"),
    place("plugins/cuda/src/cudnn/", "cuDNN's symbols and calls"),
    place("plugins/cuda/src/device/", "the driver's calls, and copies of host memory"),
    place("plugins/cuda/src/fault.rs", "the driver's own texts"),
    place("plugins/cuda/src/kernels/", "an entry's parameters and the addresses of a launch are the kernel's promise"),
    place("plugins/cuda/src/launch.rs", "a kernel finds its device behind the call's pointer"),
    place("plugins/cuda/src/libraries.rs", "opens NVIDIA's libraries"),
    place("plugins/cuda/tests/", "drive the device alone, as a host does"),
    place("plugins/int8/src/accumulate.rs", "tiles of sums through pointers, by CPU feature"),
    place("plugins/int8/src/isa.rs", "calls functions compiled for CPU features that were found"),
    place("plugins/int8/src/isa/", "vector instructions"),
    place("plugins/int8/src/output.rs", "vectors of sums on their way to the disjoint parts of one output"),
    place("plugins/int8/src/pack.rs", "lines of a panel by vector instructions"),
    place("plugins/int8/src/product.rs", "hands packed panels and parts of the output to tiles"),
    place("plugins/int8/src/spread.rs", "disjoint parts of one output for the threads of a loop; scratch memory"),
    place("plugins/int8/src/constant.rs", "reads the constant that it packs from its slot"),
    place("plugins/int8/src/depthwise/", "vectors of channels through pointers; disjoint parts of one output for threads"),
    place("plugins/int8/src/vector.rs", "the trait of vectors whose instructions the CPU must have"),
    place("plugins/int8/src/windows.rs", "packs lines of windows by vector instructions"),
    place("plugins/int8/tests/products.rs", "computes a product part by part, as its threads do"),
    place("plugins/train/src/dense.rs", "writes disjoint parts, by split.rs"),
    place("plugins/train/src/rows.rs", "writes disjoint parts, by split.rs"),
    place("tests/sessions/bad_input/feeds.rs", "makes a tensor of bools that are none, as unsafe code could"),
    place("tests/check/check_device/kinds.rs", "a simulated device's copies take host addresses"),
    place("tests/check/check_guard/kernels.rs", "kernels that misuse memory on purpose"),
    place("tests/isolate/memory.rs", "fills memory of the host's"),
    place("tests/allocations/interpose.rs", "malloc and its kin, defined in the executable to count what libraries allocate"),
    place("tests/fixtures/", "broken on purpose, some of them at the boundary itself"),
    place("tests/boundary/zoo_calls/", "reference slots and a variant's table, used as the host does"),
    place("tests/boundary/zoo_device.rs", "destroys the streams and events it made"),
    place("tests/support/cuda.rs", "opens the library that stands in for the driver, and calls its entries"),
    place("tests/zoo/", "uses every clause of the boundary, the raw ones too"),
];

/// What kind of unsafe code the keyword opens, from the tokens that follow it; `None` where it only writes a
/// type, as in `unsafe extern "C" fn(*const u8)`. Code inside macros counts: it becomes somebody's code.
fn kind(following: &[TokenTree]) -> Option<&'static str> {
    let word = |index: usize| match following.get(index) {
        Some(TokenTree::Ident(ident)) => ident.to_string(),
        _ => String::new(),
    };
    let opens = |index: usize, delimiter: Delimiter| match following.get(index) {
        Some(TokenTree::Group(group)) => group.delimiter() == delimiter,
        _ => false,
    };
    match word(0).as_str() {
        "impl" => Some("unsafe impl"),
        "trait" => Some("unsafe trait"),
        "extern" => {
            let function = (1..=2).find(|&index| word(index) == "fn");
            match function {
                Some(index) if opens(index + 1, Delimiter::Parenthesis) => None,
                Some(_) => Some("unsafe fn"),
                None => Some("unsafe extern"),
            }
        }
        "fn" if opens(1, Delimiter::Parenthesis) => None,
        "fn" => Some("unsafe fn"),
        "" if opens(0, Delimiter::Brace) => Some("unsafe block"),
        "" if opens(0, Delimiter::Parenthesis) => Some("unsafe attribute"),
        _ => Some("unsafe"),
    }
}

#[test]
fn unsafe_code_stands_in_named_places() {
    let mut found = Vec::new();
    for source in tree::rust_sources().iter().filter(|file| file.text.contains("unsafe")) {
        tree::identifiers(&source.tokens, &mut |ident, following| {
            if ident != "unsafe" {
                return;
            }
            if let Some(kind) = kind(following) {
                let line = ident.span().start().line;
                found.push((source.path.clone(), format!("line {line}: {kind}")));
            }
        });
    }
    tree::expect_none("unsafe code stands in named places", PLACES, found);
}

#[test]
fn a_type_is_told_from_code() {
    let kinds = |text: &str| {
        let mut kinds = Vec::new();
        let tokens = text.parse().expect("tokens");
        tree::identifiers(&tokens, &mut |ident, following| {
            kinds.extend((ident == "unsafe").then(|| kind(following)).flatten());
        });
        kinds
    };
    assert_eq!(kinds("struct T { f: unsafe extern \"C\" fn(*const u8), g: unsafe fn() }"), [""; 0]);
    assert_eq!(kinds("unsafe extern \"C\" fn f() {}"), ["unsafe fn"]);
    assert_eq!(kinds("unsafe extern \"C\" { fn f(); }"), ["unsafe extern"]);
    assert_eq!(kinds("fn f() { m!(unsafe { g() }) }"), ["unsafe block"]);
    assert_eq!(kinds("#[unsafe(no_mangle)] fn f() {}"), ["unsafe attribute"]);
    assert_eq!(kinds("unsafe impl Send for T {}"), ["unsafe impl"]);
}
