//! Variants: values of a type that only the plugin knows, handled through its table.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};
use tenon_sdk::{
    author::{CopyTarget, EncodedValue, TensorSink},
    prelude::*,
};

/// Values that are alive, so that a test sees that each is destroyed.
static LIVE: AtomicI64 = AtomicI64::new(0);

/// The value of a variant.
struct Amount(f32);

impl Amount {
    fn new(value: f32) -> Amount {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Amount(value)
    }
}

impl Clone for Amount {
    fn clone(&self) -> Amount {
        Amount::new(self.0)
    }
}

impl Drop for Amount {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

impl VariantValue for Amount {
    const NAME: &'static str = "zoo.Amount";

    fn encode(&self, _: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        Ok(self.0.to_string().into_bytes())
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<Amount, KernelError> {
        let text = std::str::from_utf8(encoded.bytes()).ok();
        let amount = text.and_then(|text| text.parse().ok());
        amount.map(Amount::new).ok_or_else(|| {
            let found = String::from_utf8_lossy(encoded.bytes());
            KernelError::invalid_argument(format!("zoo.Amount: expected a number, found '{found}'"))
        })
    }

    fn copy_to_device(&self, to: &CopyTarget<'_>) -> Result<Amount, KernelError> {
        if to.memory().is_host_address() {
            return Ok(self.clone());
        }
        Err(KernelError::unimplemented("an amount holds no tensor: it lives in host memory"))
    }

    fn zeros_like(&self) -> Result<Amount, KernelError> {
        Ok(Amount::new(0.0))
    }

    fn add(&self, other: &Amount) -> Result<Amount, KernelError> {
        Ok(Amount::new(self.0 + other.0))
    }
}

register_variant!(Amount);

/// A value with a tensor of its own.
#[derive(Clone)]
struct Parcel {
    label: String,
    contents: Arc<Kept>,
}

impl VariantValue for Parcel {
    const NAME: &'static str = "zoo.Parcel";

    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        tensors.give(&self.contents)?;
        Ok(self.label.clone().into_bytes())
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<Parcel, KernelError> {
        let label = String::from_utf8_lossy(encoded.bytes()).into_owned();
        Ok(Parcel { label, contents: Arc::new(encoded.tensor(0)?) })
    }
}

register_variant!(Parcel);

register_op!(
    "ZooParcelPack",
    inputs = &["contents: float"],
    outputs = &["parcel: variant"],
    attrs = &["label: string"],
    shape = scalar,
    summary = "A variant that holds a tensor and a text.",
);

struct Pack {
    label: String,
}

impl Kernel for Pack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pack { label: c.attr::<&str>("label")?.to_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let contents = Arc::new(c.keep(0)?);
        c.set_variant(0, Variant::new(Parcel { label: self.label.clone(), contents }))
    }
}

register_kernel!("ZooParcelPack" on "CPU": Pack);

register_op!(
    "ZooParcelUnpack",
    inputs = &["parcel: variant"],
    outputs = &["contents: float", "label: string"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.unknown())?;
        c.set_output(1, c.scalar())
    },
    summary = "The tensor and the text of a variant.",
);

fn unpack(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let parcel = c.variant::<Parcel>(0)?;
    c.output_kept(0, &parcel.contents)?;
    c.set_strings(1, &[], [&parcel.label].into_iter())
}

register_kernel!("ZooParcelUnpack" on "CPU": fn unpack);

/// The variant that a scalar input holds, of whatever type.
fn any<'a>(c: &ComputeContext<'a>, input: usize) -> Result<VariantRef<'a>, KernelError> {
    c.variants(input)?.first().copied().ok_or_else(|| {
        KernelError::invalid_argument(format!("input {input}: expected a variant, found none"))
    })
}

fn scalar(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())
}

register_op!(
    "ZooVariantMake",
    inputs = &["value: float"],
    outputs = &["v: variant"],
    shape = scalar,
    summary = "A variant that holds one float.",
);

fn make(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let value =
        *c.input::<f32>(0)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("value: expected one element, found none")
        })?;
    c.set_variant(0, Variant::new(Amount::new(value)))
}

register_kernel!("ZooVariantMake" on "CPU": fn make);

register_op!(
    "ZooVariantRead",
    inputs = &["v: variant"],
    outputs = &["value: float"],
    shape = scalar,
    summary = "The float of a variant.",
);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let amount = c.variant::<Amount>(0)?.0;
    c.output::<f32>(0, &[])?.data[0] = amount;
    Ok(())
}

register_kernel!("ZooVariantRead" on "CPU": fn read);

register_op!(
    "ZooVariantClone",
    inputs = &["v: variant"],
    outputs = &["copy: variant"],
    shape = scalar,
    summary = "A copy of a variant, by its table.",
);

fn copy(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_variant(0, any(c, 0)?.to_owned()?)
}

register_kernel!("ZooVariantClone" on "CPU": fn copy);

register_op!(
    "ZooVariantZeros",
    inputs = &["v: variant"],
    outputs = &["zeros: variant"],
    shape = scalar,
    summary = "Zeros of a variant's form, by its table.",
);

fn zeros(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_variant(0, any(c, 0)?.zeros_like()?)
}

register_kernel!("ZooVariantZeros" on "CPU": fn zeros);

register_op!(
    "ZooVariantAdd",
    inputs = &["a: variant", "b: variant"],
    outputs = &["sum: variant"],
    commutative = true,
    shape = scalar,
    summary = "The sum of two variants, by their table.",
);

fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.set_variant(0, any(c, 0)?.add(&any(c, 1)?)?)
}

register_kernel!("ZooVariantAdd" on "CPU": fn sum);

register_op!(
    "ZooVariantLive",
    outputs = &["count: int64"],
    stateful = true,
    shape = scalar,
    summary = "How many values of variants are alive.",
);

fn live(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<i64>(0, &[])?.data[0] = LIVE.load(Ordering::Relaxed);
    Ok(())
}

register_kernel!("ZooVariantLive" on "CPU": fn live);
