//! Element types, numbered as TensorFlow's `DataType`.

use abi_stable::StableAbi;
use core::fmt;

/// An element type. A reference type is its base plus 100.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(pub u32);

macro_rules! dtypes {
    ($($name:ident = $value:literal, $text:literal, $bits:literal;)*) => {
        impl DType {
            $(#[doc = concat!("`", $text, "`")] pub const $name: DType = DType($value);)*

            /// Every numbered type, the reserved ones included, in the order of their numbers.
            pub const ALL: &'static [DType] = &[$(DType($value)),*];

            /// TensorFlow's name of the base type, such as `float` or `int32`; `invalid` when the
            /// number names none.
            pub const fn name(self) -> &'static str {
                match self.base().0 {
                    $($value => $text,)*
                    _ => "invalid",
                }
            }

            /// The base type with this TensorFlow name.
            pub fn from_name(name: &str) -> Option<DType> {
                match name {
                    $($text => Some(DType($value)),)*
                    _ => None,
                }
            }

            /// Size of one element in bits; 0 for an invalid number. Strings, resources and variants
            /// have the size of their C element.
            #[inline]
            pub const fn bits(self) -> u32 {
                match self.base().0 {
                    $($value => $bits,)*
                    _ => 0,
                }
            }
        }
    };
}

dtypes! {
    FLOAT = 1, "float", 32;
    DOUBLE = 2, "double", 64;
    INT32 = 3, "int32", 32;
    UINT8 = 4, "uint8", 8;
    INT16 = 5, "int16", 16;
    INT8 = 6, "int8", 8;
    STRING = 7, "string", 192;
    COMPLEX64 = 8, "complex64", 64;
    INT64 = 9, "int64", 64;
    BOOL = 10, "bool", 8;
    QINT8 = 11, "qint8", 8;
    QUINT8 = 12, "quint8", 8;
    QINT32 = 13, "qint32", 32;
    BFLOAT16 = 14, "bfloat16", 16;
    QINT16 = 15, "qint16", 16;
    QUINT16 = 16, "quint16", 16;
    UINT16 = 17, "uint16", 16;
    COMPLEX128 = 18, "complex128", 128;
    HALF = 19, "half", 16;
    RESOURCE = 20, "resource", 64;
    VARIANT = 21, "variant", 128;
    UINT32 = 22, "uint32", 32;
    UINT64 = 23, "uint64", 64;
    FLOAT8_E5M2 = 24, "float8_e5m2", 8;
    FLOAT8_E4M3FN = 25, "float8_e4m3fn", 8;
    FLOAT8_E4M3FNUZ = 26, "float8_e4m3fnuz", 8;
    FLOAT8_E4M3B11FNUZ = 27, "float8_e4m3b11fnuz", 8;
    FLOAT8_E5M2FNUZ = 28, "float8_e5m2fnuz", 8;
    INT4 = 29, "int4", 4;
    UINT4 = 30, "uint4", 4;
    INT2 = 31, "int2", 2;
    UINT2 = 32, "uint2", 2;
    FLOAT4_E2M1FN = 33, "float4_e2m1fn", 4;
}

impl DType {
    /// No type.
    pub const INVALID: DType = DType(0);

    /// Whether this is a reference type (base plus 100).
    #[inline]
    pub const fn is_ref(self) -> bool {
        self.0 > 100
    }

    /// The type without its reference mark.
    #[inline]
    pub const fn base(self) -> DType {
        if self.0 > 100 { DType(self.0 - 100) } else { self }
    }

    /// The reference type of this base type.
    pub const fn as_ref_type(self) -> DType {
        DType(self.base().0 + 100)
    }

    /// Whether the number names a type.
    pub const fn is_valid(self) -> bool {
        self.bits() != 0
    }

    /// Size of one element in bytes; `None` for types below one byte and invalid numbers.
    #[inline]
    pub const fn size(self) -> Option<usize> {
        let bits = self.bits();
        if bits == 0 || !bits.is_multiple_of(8) { None } else { Some((bits / 8) as usize) }
    }

    /// Whether elements must be destroyed and may not be copied as bytes (string, resource, variant).
    #[inline]
    pub const fn needs_drop(self) -> bool {
        matches!(self.base(), DType::STRING | DType::RESOURCE | DType::VARIANT)
    }

    /// Whether elements are integers, signed or not; quantised types and `bool` are not among them, nor are reference types.
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            DType::INT8
                | DType::INT16
                | DType::INT32
                | DType::INT64
                | DType::UINT8
                | DType::UINT16
                | DType::UINT32
                | DType::UINT64
        )
    }

    /// Whether elements are real floating-point numbers of 16 bits or more.
    #[inline]
    pub const fn is_floating(self) -> bool {
        matches!(self, DType::HALF | DType::BFLOAT16 | DType::FLOAT | DType::DOUBLE)
    }

    /// Whether elements are complex numbers.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::COMPLEX64 | DType::COMPLEX128)
    }

    /// Whether elements are quantised: integers that represent numbers of a range.
    #[inline]
    pub const fn is_quantized(self) -> bool {
        matches!(
            self,
            DType::QINT8 | DType::QUINT8 | DType::QINT16 | DType::QUINT16 | DType::QINT32
        )
    }

    /// Whether this version of Tenon only numbers the type: float8 and the types below one byte.
    #[inline]
    pub const fn is_reserved(self) -> bool {
        let base = self.base().0;
        base >= 24 && base <= 33
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.is_ref() { f.write_str("_ref") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::DType;
    use crate::{ResourceElement, StringElement, VariantElement};

    #[test]
    fn names_go_round() {
        assert_eq!(DType::ALL.len(), 33);
        for &dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert!(dtype.is_valid() && !dtype.is_ref());
        }
        assert_eq!(DType::from_name("invalid"), None);
    }

    #[test]
    fn a_reference_type_is_its_base_plus_100() {
        let reference = DType::FLOAT.as_ref_type();
        assert_eq!(reference, DType(101));
        assert_eq!(reference.as_ref_type(), reference);
        assert_eq!(reference.base(), DType::FLOAT);
        assert_eq!(reference.bits(), 32);
        assert_eq!(reference.to_string(), "float_ref");
    }

    #[test]
    fn numbers_that_name_no_type_are_invalid() {
        for number in [0, 34, 99, 100, 134, 200, 201, u32::MAX] {
            let dtype = DType(number);
            assert!(!dtype.is_valid(), "{number}");
            assert_eq!((dtype.name(), dtype.size()), ("invalid", None), "{number}");
        }
    }

    #[test]
    fn elements_that_own_have_the_size_of_their_struct() {
        assert_eq!(DType::STRING.size(), Some(size_of::<StringElement>()));
        assert_eq!(DType::RESOURCE.size(), Some(size_of::<ResourceElement>()));
        assert_eq!(DType::VARIANT.size(), Some(size_of::<VariantElement>()));
        let owning = DType::ALL.iter().filter(|dtype| dtype.needs_drop()).count();
        assert_eq!(owning, 3);
    }

    #[test]
    fn every_computed_type_is_of_one_kind() {
        for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_reserved()) {
            let other = dtype == DType::BOOL || dtype.needs_drop();
            let kinds = [
                dtype.is_integer(),
                dtype.is_floating(),
                dtype.is_complex(),
                dtype.is_quantized(),
                other,
            ];
            assert_eq!(kinds.iter().filter(|&&kind| kind).count(), 1, "{dtype}");
            assert!(!dtype.as_ref_type().is_integer() && !dtype.as_ref_type().is_floating());
        }
    }

    #[test]
    fn types_below_a_byte_have_no_size_in_bytes() {
        let small: Vec<DType> =
            DType::ALL.iter().copied().filter(|dtype| dtype.size().is_none()).collect();
        assert_eq!(small, [DType::INT4, DType::UINT4, DType::INT2, DType::UINT2, DType(33)]);
        assert!(small.iter().all(|dtype| dtype.is_reserved()));
    }
}
