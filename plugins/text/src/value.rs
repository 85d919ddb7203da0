//! Elements of any type.

use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{DType, KernelError, author::ComputeContext};

/// One element, widened without loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A float of at most 32 bits.
    Single(f32),
    /// A float of 64 bits.
    Double(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A truth value.
    Bool(bool),
    /// A string.
    Text(&'a [u8]),
}

/// Function that returns an element by its index.
pub type Values<'a> = Box<dyn Fn(usize) -> Value<'a> + 'a>;

macro_rules! values {
    ($c:expr, $input:expr, $dtype:expr, $($name:ident: $ty:ty => $make:expr;)*) => {
        match $dtype {
            $(DType::$name => {
                let data = $c.input::<$ty>($input)?.data;
                let make: fn($ty) -> Value<'static> = $make;
                Some(Box::new(move |at: usize| make(data[at])) as Values<'a>)
            })*
            DType::STRING => {
                let data = $c.strings($input)?;
                Some(Box::new(move |at: usize| Value::Text(data[at])) as Values<'a>)
            }
            _ => None,
        }
    };
}

/// The elements of an input; `None` for types that are neither numbers nor strings.
pub fn values<'a>(c: &ComputeContext<'a>, input: usize) -> Result<Option<Values<'a>>, KernelError> {
    Ok(values! { c, input, c.slot(input)?.dtype,
        BOOL: bool => Value::Bool;
        INT8: i8 => |x| Value::Signed(x.into());
        INT16: i16 => |x| Value::Signed(x.into());
        INT32: i32 => |x| Value::Signed(x.into());
        INT64: i64 => Value::Signed;
        UINT8: u8 => |x| Value::Unsigned(x.into());
        UINT16: u16 => |x| Value::Unsigned(x.into());
        UINT32: u32 => |x| Value::Unsigned(x.into());
        UINT64: u64 => Value::Unsigned;
        HALF: f16 => |x| Value::Single(x.to_f32());
        BFLOAT16: bf16 => |x| Value::Single(x.to_f32());
        FLOAT: f32 => Value::Single;
        DOUBLE: f64 => Value::Double;
        COMPLEX64: Complex<f32> => |x| Value::Complex(x.re.into(), x.im.into());
        COMPLEX128: Complex<f64> => |x| Value::Complex(x.re, x.im);
    })
}
