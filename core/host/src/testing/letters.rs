//! Variants of a type that is encoded as its text, and kernels that make and change them.

use std::sync::Arc;
use tenon_author::{
    ComputeContext, CreateContext, EncodedValue, EncodedVariant, Kept, Kernel, TensorSink, Variant,
    VariantValue, register_kernel, register_op, register_variant,
};
use tenon_framework::KernelError;

#[derive(Clone)]
struct Letters(Vec<u8>);

impl VariantValue for Letters {
    const NAME: &'static str = "test.Letters";

    fn encode(&self, _: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        Ok(self.0.clone())
    }
}

register_op!("HostTestLetters", inputs = &[], outputs = &["y: variant"]);
register_op!("HostTestLetter", inputs = &["x: variant"], outputs = &["y: variant"]);

fn make(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let letters = [b"a", b"b"].map(|text| Variant::new(Letters(text.to_vec())));
    c.set_variants(0, &[2], letters.into_iter())
}

/// Appends to each value the digit of its position.
fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.change_variants(0, 0, |at, letters: &mut Letters| {
        letters.0.push(b'0' + at as u8);
        Ok(())
    })
}

/// As [`add`], after a look at the values.
fn look_and_add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let before = c.variant::<Letters>(0)?;
    add(c)?;
    assert_eq!(before.0, b"a", "what a kernel looks at does not change");
    Ok(())
}

register_kernel!("HostTestLetters" on "CPU": fn make);
register_kernel!("HostTestLetter" on "CPU": fn add);
register_kernel!("HostTestLetter" on "CPU": fn look_and_add, label = "looks", on_request = true);

/// A tensor.
#[derive(Clone)]
struct Crate(Arc<Kept>);

impl VariantValue for Crate {
    const NAME: &'static str = "test.Crate";

    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        tensors.give(&self.0)?;
        Ok(b"one".to_vec())
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<Crate, KernelError> {
        match encoded.bytes() {
            b"one" => Ok(Crate(Arc::new(encoded.tensor(0)?))),
            _ => Err(KernelError::invalid_argument("test.Crate: expected one tensor")),
        }
    }
}

register_variant!(Crate);
register_op!("HostTestCrates", inputs = &["x: float"], outputs = &["y: variant"]);
register_op!("HostTestStored", inputs = &["x: variant"], outputs = &["y: variant"]);
register_op!(
    "HostTestMade",
    inputs = &[],
    outputs = &["y: variant"],
    attrs = &["type_name: string", "bytes: string"],
);

/// A tensor of an element with the input, and one without a value.
fn crates(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let kept = Arc::new(c.keep(0)?);
    let one = |at| Ok((at == 0).then(|| Variant::new(Crate(Arc::clone(&kept)))));
    c.make_variants(0, &[2], one)
}

/// Encodes the elements of the input and makes them again.
fn store(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let variants = c.variants(0)?;
    c.make_variants(0, c.dims(0), |at| c.decode_variant(&c.encode_variant(&variants[at])?))
}

/// Makes a variant of the attributes.
struct Made(EncodedVariant);

impl Kernel for Made {
    fn new(c: &CreateContext<'_>) -> Result<Made, KernelError> {
        let (type_name, bytes): (&str, &str) = (c.attr("type_name")?, c.attr("bytes")?);
        let (type_name, bytes) = (type_name.to_owned(), bytes.as_bytes().to_vec());
        Ok(Made(EncodedVariant { type_name, bytes, tensors: Vec::new() }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.make_variants(0, &[], |_| c.decode_variant(&self.0))
    }
}

register_kernel!("HostTestCrates" on "CPU": fn crates);
register_kernel!("HostTestStored" on "CPU": fn store);
register_kernel!("HostTestMade" on "CPU": Made);
