//! `_QuantizedLookup`: a function of 8-bit values as a table.

use crate::kernels::channels::map;
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, geometry::GeometryError, reg::Numerics,
    register_kernel,
};

/// Values of a table.
const VALUES: usize = 256;

/// Both types are bytes; `FLIP` maps a signed byte's least value, 128, to 0.
fn lookup<const FLIP: u8>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let found = c.dims(1).len();
    if found != 1 {
        return Err(GeometryError::Rank { what: "table", expected: 1, found }.into());
    }
    let (x, table) = (c.input_bytes(0)?, c.input_bytes(1)?);
    let Ok(table) = <&[u8; VALUES]>::try_from(table) else {
        let found = table.len();
        return Err(GeometryError::Length { what: "table", expected: VALUES, found }.into());
    };
    let y = c.output_bytes(0, c.dims(0))?;
    map(c, (x, y), 0.5, |x| table[usize::from(x ^ FLIP)])
}

register_kernel!("_QuantizedLookup" on "CPU": fn lookup::<0>, types = ("T", &[DType::QUINT8]),
    numerics = Numerics::EXACT);
register_kernel!("_QuantizedLookup" on "CPU": fn lookup::<0x80>, types = ("T", &[DType::QINT8]),
    numerics = Numerics::EXACT);
