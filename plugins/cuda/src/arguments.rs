//! Arguments of NVIDIA's libraries: addresses and scaling factors.

use std::ffi::c_void;

/// A device address as the pointer that the libraries take.
pub(crate) fn pointer(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

/// The factors 1 and 0 in the type by which a library scales results: `double` for double, else
/// `float`.
pub(crate) struct Factors {
    floats: [f32; 2],
    doubles: [f64; 2],
    is_double: bool,
}

impl Factors {
    /// Factors for results of double, or of another type.
    pub fn new(is_double: bool) -> Factors {
        Factors { floats: [1.0, 0.0], doubles: [1.0, 0.0], is_double }
    }

    fn at(&self, index: usize) -> *const c_void {
        match self.is_double {
            true => (&raw const self.doubles[index]).cast(),
            false => (&raw const self.floats[index]).cast(),
        }
    }

    /// Pointer to the factor 1, valid as long as `self`.
    pub fn one(&self) -> *const c_void {
        self.at(0)
    }

    /// Pointer to the factor 0, valid as long as `self`.
    pub fn zero(&self) -> *const c_void {
        self.at(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_the_type_of_the_results() {
        let (floats, doubles) = (Factors::new(false), Factors::new(true));
        assert_eq!((floats.floats, doubles.doubles), ([1.0, 0.0], [1.0, 0.0]));
        assert_eq!(floats.one(), (&raw const floats.floats[0]).cast());
        assert_eq!(floats.zero(), (&raw const floats.floats[1]).cast());
        assert_eq!(doubles.one(), (&raw const doubles.doubles[0]).cast());
        assert_eq!(doubles.zero(), (&raw const doubles.doubles[1]).cast());
    }
}
