//! `DataFormatDimMap` and `DataFormatVecPermute`.

use super::moves::write_integers;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The dimensions of images in the names of formats.
const IMAGE: [u8; 3] = [b'D', b'H', b'W'];

fn refuse(message: String) -> KernelError {
    KernelError::invalid_argument(message)
}

/// Two data formats of the same dimensions.
struct Formats {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Formats {
    fn new(c: &CreateContext<'_>) -> Result<Formats, KernelError> {
        let (from, to) = (c.attr::<&str>("src_format")?, c.attr::<&str>("dst_format")?);
        for (name, format) in [("src_format", from), ("dst_format", to)] {
            if !matches!(format.len(), 4 | 5) {
                return Err(refuse(format!(
                    "{name} must have 4 or 5 dimensions, found {format:?}"
                )));
            }
        }
        let sorted = |format: &str| {
            let mut letters = growth::copied(format.as_bytes())?;
            letters.sort_unstable();
            Ok::<_, KernelError>(letters)
        };
        let letters = sorted(from)?;
        if letters != sorted(to)? || letters.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(refuse(format!(
                "src_format and dst_format must name the same dimensions, each once, found {from:?} and {to:?}"
            )));
        }
        Ok(Formats { from: growth::copied(from.as_bytes())?, to: growth::copied(to.as_bytes())? })
    }

    /// The formats of images alone.
    fn of_images(&self) -> Result<Formats, KernelError> {
        let image = |format: &[u8]| {
            growth::collected(format.iter().copied().filter(|letter| IMAGE.contains(letter)))
        };
        Ok(Formats { from: image(&self.from)?, to: image(&self.to)? })
    }

    /// For each dimension of the first format its number in the second.
    fn places(&self) -> Result<Vec<usize>, KernelError> {
        let place = |letter| self.to.iter().position(|to| to == letter);
        growth::collected(self.from.iter().filter_map(place))
    }
}

struct DimMap {
    places: Vec<usize>,
}

impl Kernel for DimMap {
    fn new(c: &CreateContext<'_>) -> Result<DimMap, KernelError> {
        Ok(DimMap { places: Formats::new(c)?.places()? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, count) = (c.integers(0)?, self.places.len() as i64);
        let numbers = x.iter().map(|x| self.places[x.rem_euclid(count) as usize] as i64);
        write_integers(c, 0, c.dims(0), numbers)
    }
}

struct VecPermute {
    formats: Formats,
}

impl VecPermute {
    /// The dimensions that the rows of a tensor of this shape stand for.
    fn places(&self, dims: &[i64]) -> Result<Vec<usize>, KernelError> {
        let all = self.formats.from.len();
        let (rows, pairs) = match *dims {
            [rows] => (rows, 2),
            [rows, pairs] => (rows, pairs),
            _ => {
                let message = format!("x must have 1 or 2 dimensions, got {}", dims.len());
                return Err(refuse(message));
            }
        };
        if pairs != 2 {
            return Err(refuse(format!("x must have rows of 2 elements, found shape {dims:?}")));
        }
        if rows == all as i64 {
            return self.formats.places();
        }
        let images = self.formats.of_images()?;
        if rows == all as i64 - 2 && images.from.len() == all - 2 {
            return images.places();
        }
        Err(refuse(format!(
            "x must have {all} rows, or {} for the dimensions of images, found shape {dims:?}",
            all - 2
        )))
    }
}

impl Kernel for VecPermute {
    fn new(c: &CreateContext<'_>) -> Result<VecPermute, KernelError> {
        Ok(VecPermute { formats: Formats::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.integers(0)?;
        let places = self.places(c.dims(0))?;
        let width = x.len() / places.len();
        let mut y = growth::copied(&x)?;
        for (row, &place) in x.chunks_exact(width).zip(&places) {
            y[place * width..][..width].copy_from_slice(row);
        }
        write_integers(c, 0, c.dims(0), y.into_iter())
    }
}

register_kernel!("DataFormatDimMap" on "CPU": DimMap, numerics = Numerics::EXACT);
register_kernel!("DataFormatVecPermute" on "CPU": VecPermute, numerics = Numerics::EXACT);
