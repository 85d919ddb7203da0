//! Variants of a type that is encoded as its text, and kernels that make and change them.

use tenon_author::{
    ComputeContext, TensorSink, Variant, VariantValue, register_kernel, register_op,
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
