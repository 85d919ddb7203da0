//! `AsString` and `StringToNumber`.

use crate::{
    number::Parse,
    printf::{Conversion, Spec},
    shown,
    value::{Value, values},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Greatest width and precision of an element's text, so that no attribute can exhaust memory.
const MOST_CHARACTERS: i64 = 1 << 20;

struct AsString {
    spec: Spec,
    conversion: Conversion,
}

impl Kernel for AsString {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (scientific, shortest): (bool, bool) = (c.attr("scientific")?, c.attr("shortest")?);
        let (width, precision): (i64, i64) = (c.attr("width")?, c.attr("precision")?);
        check(c, scientific, shortest, precision)?;
        for (name, value) in [("width", width), ("precision", precision)] {
            if value > MOST_CHARACTERS {
                return Err(KernelError::invalid_argument(format!(
                    "{name} must be at most {MOST_CHARACTERS}, found {value}"
                )));
            }
        }
        let spec = Spec {
            flag: flag(c.attr("fill")?)?,
            width: usize::try_from(width).unwrap_or(0),
            precision: usize::try_from(precision).ok(),
        };
        let conversion = match (scientific, shortest) {
            (true, _) => Conversion::Scientific,
            (_, true) => Conversion::Shortest,
            _ => Conversion::Fixed,
        };
        Ok(AsString { spec, conversion })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Some(values) = values(c, 0)? else {
            let found = c.slot(0)?.dtype;
            return Err(KernelError::unimplemented(format!("no text for elements of {found}")));
        };
        c.write_texts(0, c.dims(0), |at, text| self.text(values(at), text))
    }
}

impl AsString {
    fn text(&self, value: Value<'_>, to: &mut Vec<u8>) -> Result<(), KernelError> {
        let float = |value: f64, to: &mut Vec<u8>| self.spec.float(value, self.conversion, to);
        match value {
            Value::Signed(x) => self.spec.signed(x, to),
            Value::Unsigned(x) => self.spec.unsigned(x, to),
            Value::Single(x) => float(x.into(), to),
            Value::Double(x) => float(x, to),
            Value::Complex(re, im) => {
                growth::append(to, b"(")?;
                float(re, to)?;
                growth::append(to, b",")?;
                float(im, to)?;
                growth::append(to, b")")
            }
            Value::Bool(x) => growth::append(to, if x { b"true" } else { b"false" }),
            Value::Text(x) => self.spec.text(x, to),
        }
    }
}

/// Checks attributes: precision applies to numbers with a fraction, and the notations exclude each
/// other.
fn check(
    c: &CreateContext<'_>,
    scientific: bool,
    shortest: bool,
    precision: i64,
) -> Result<(), KernelError> {
    let dtype = c.input_types().first().copied().unwrap_or(DType::INVALID);
    let whole = dtype == DType::BOOL
        || [DType::INT8, DType::INT16, DType::INT32, DType::INT64].contains(&dtype)
        || [DType::UINT8, DType::UINT16, DType::UINT32, DType::UINT64].contains(&dtype);
    let wrong = if scientific && shortest {
        "scientific and shortest exclude each other, found both".to_owned()
    } else if whole && (scientific || shortest) {
        format!("scientific and shortest are for floats, found {dtype}")
    } else if whole && precision >= 0 {
        format!("precision is for floats, found {dtype}")
    } else {
        return Ok(());
    };
    Err(KernelError::invalid_argument(wrong))
}

fn flag(fill: &str) -> Result<Option<u8>, KernelError> {
    match fill.as_bytes() {
        [] => Ok(None),
        &[flag @ (b' ' | b'+' | b'-' | b'0' | b'#')] => Ok(Some(flag)),
        _ => Err(KernelError::invalid_argument(format!(
            "fill must be empty, ' ', '+', '-', '0' or '#', found '{fill}'"
        ))),
    }
}

register_kernel!("AsString" on "CPU": AsString,
    types = ("T", &[
        DType::BOOL, DType::INT8, DType::INT16, DType::INT32, DType::INT64, DType::UINT8,
        DType::UINT16, DType::UINT32, DType::UINT64, DType::HALF, DType::BFLOAT16, DType::FLOAT,
        DType::DOUBLE, DType::COMPLEX64, DType::COMPLEX128, DType::STRING,
    ]),
    numerics = Numerics::EXACT);

fn to_number<T: Element + Parse>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let y = c.output::<T>(0, c.dims(0))?.data;
    for (y, x) in y.iter_mut().zip(c.strings(0)?) {
        *y = T::parse(x).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "string_tensor holds '{}', which is not a value of {}",
                shown(x),
                T::DTYPE
            ))
        })?;
    }
    Ok(())
}

register_kernel!("StringToNumber" on "CPU":
    fn to_number<T> for "out_type" in [f32, f64, i32, i64, u32, u64], numerics = Numerics::EXACT);
