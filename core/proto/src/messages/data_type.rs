//! Element types by their numbers on the wire.

// Every type except DT_INVALID has a reference form; a macro keeps the two and their names
// together.
macro_rules! data_types {
    ($($variant:ident = $number:tt, $reference:ident = $ref_number:tt, $name:literal, $doc:literal;)+) => {
        /// Element type of a tensor, with the reference form of each type.
        ///
        /// Messages keep the number as `i32`, so that an unknown number survives; for such a number
        /// the getters of messages return [`DataType::Invalid`], and `DataType::try_from` an error.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration,
        )]
        #[repr(i32)]
        pub enum DataType {
            /// No type: never legal as the type of a tensor.
            Invalid = 0,
            $(
                #[doc = $doc]
                $variant = $number,
                #[doc = concat!("Reference to a tensor of type `", $name, "`.")]
                $reference = $ref_number,
            )+
        }

        impl DataType {
            /// Every type, references included, with [`DataType::Invalid`] first.
            pub const ALL: &'static [DataType] =
                &[Self::Invalid, $(Self::$variant, Self::$reference,)+];

            /// Whether this is the reference form of a type.
            #[must_use]
            pub const fn is_ref(self) -> bool {
                matches!(self, $(Self::$reference)|+)
            }

            /// The type without reference; itself if it is not a reference.
            #[must_use]
            pub const fn base(self) -> DataType {
                match self {
                    $(Self::$reference => Self::$variant,)+
                    plain => plain,
                }
            }

            /// The reference form; itself if it is a reference, `None` for [`DataType::Invalid`].
            #[must_use]
            pub const fn to_ref(self) -> Option<DataType> {
                match self {
                    Self::Invalid => None,
                    $(Self::$variant | Self::$reference => Some(Self::$reference),)+
                }
            }

            /// TensorFlow's name, such as `DT_FLOAT` or `DT_FLOAT_REF`.
            #[must_use]
            pub const fn as_str_name(self) -> &'static str {
                match self {
                    Self::Invalid => "DT_INVALID",
                    $(
                        Self::$variant => $name,
                        Self::$reference => concat!($name, "_REF"),
                    )+
                }
            }

            /// The type that TensorFlow calls `name`.
            #[must_use]
            pub fn from_str_name(name: &str) -> Option<DataType> {
                Self::ALL.iter().copied().find(|dtype| dtype.as_str_name() == name)
            }
        }
    };
}

data_types! {
    Float = 1, FloatRef = 101, "DT_FLOAT", "32-bit float.";
    Double = 2, DoubleRef = 102, "DT_DOUBLE", "64-bit float.";
    Int32 = 3, Int32Ref = 103, "DT_INT32", "32-bit integer.";
    Uint8 = 4, Uint8Ref = 104, "DT_UINT8", "8-bit unsigned integer.";
    Int16 = 5, Int16Ref = 105, "DT_INT16", "16-bit integer.";
    Int8 = 6, Int8Ref = 106, "DT_INT8", "8-bit integer.";
    String = 7, StringRef = 107, "DT_STRING", "Bytes of any length.";
    Complex64 = 8, Complex64Ref = 108, "DT_COMPLEX64", "Two 32-bit floats.";
    Int64 = 9, Int64Ref = 109, "DT_INT64", "64-bit integer.";
    Bool = 10, BoolRef = 110, "DT_BOOL", "True or false.";
    Qint8 = 11, Qint8Ref = 111, "DT_QINT8", "Quantised value stored in 8 bits.";
    Quint8 = 12, Quint8Ref = 112, "DT_QUINT8", "Quantised value stored in 8 unsigned bits.";
    Qint32 = 13, Qint32Ref = 113, "DT_QINT32", "Quantised value stored in 32 bits.";
    Bfloat16 = 14, Bfloat16Ref = 114, "DT_BFLOAT16", "The upper half of a 32-bit float.";
    Qint16 = 15, Qint16Ref = 115, "DT_QINT16", "Quantised value stored in 16 bits.";
    Quint16 = 16, Quint16Ref = 116, "DT_QUINT16", "Quantised value stored in 16 unsigned bits.";
    Uint16 = 17, Uint16Ref = 117, "DT_UINT16", "16-bit unsigned integer.";
    Complex128 = 18, Complex128Ref = 118, "DT_COMPLEX128", "Two 64-bit floats.";
    Half = 19, HalfRef = 119, "DT_HALF", "16-bit float of IEEE 754.";
    Resource = 20, ResourceRef = 120, "DT_RESOURCE", "Handle to state outside the graph.";
    Variant = 21, VariantRef = 121, "DT_VARIANT", "Value of a type registered by name.";
    Uint32 = 22, Uint32Ref = 122, "DT_UINT32", "32-bit unsigned integer.";
    Uint64 = 23, Uint64Ref = 123, "DT_UINT64", "64-bit unsigned integer.";
    Float8E5m2 = 24, Float8E5m2Ref = 124, "DT_FLOAT8_E5M2", "5 exponent and 2 mantissa bits.";
    Float8E4m3fn = 25, Float8E4m3fnRef = 125, "DT_FLOAT8_E4M3FN",
        "4 exponent and 3 mantissa bits, finite values and NaN only.";
    Float8E4m3fnuz = 26, Float8E4m3fnuzRef = 126, "DT_FLOAT8_E4M3FNUZ",
        "4 exponent and 3 mantissa bits, finite values and NaN only, one zero.";
    Float8E4m3b11fnuz = 27, Float8E4m3b11fnuzRef = 127, "DT_FLOAT8_E4M3B11FNUZ",
        "As `DT_FLOAT8_E4M3FNUZ` with exponent bias 11.";
    Float8E5m2fnuz = 28, Float8E5m2fnuzRef = 128, "DT_FLOAT8_E5M2FNUZ",
        "5 exponent and 2 mantissa bits, finite values and NaN only, one zero.";
    Int4 = 29, Int4Ref = 129, "DT_INT4", "4-bit integer.";
    Uint4 = 30, Uint4Ref = 130, "DT_UINT4", "4-bit unsigned integer.";
    Int2 = 31, Int2Ref = 131, "DT_INT2", "2-bit integer.";
    Uint2 = 32, Uint2Ref = 132, "DT_UINT2", "2-bit unsigned integer.";
    Float4E2m1fn = 33, Float4E2m1fnRef = 133, "DT_FLOAT4_E2M1FN",
        "2 exponent bits and 1 mantissa bit, finite values only.";
}

#[cfg(test)]
mod tests {
    use super::DataType;

    const REF_OFFSET: i32 = 100;

    #[test]
    fn a_reference_is_its_base_plus_one_hundred() {
        assert_eq!(DataType::ALL.len(), 1 + 2 * 33);
        for &dtype in DataType::ALL {
            let offset = if dtype.is_ref() { REF_OFFSET } else { 0 };
            assert_eq!(dtype as i32, dtype.base() as i32 + offset, "{dtype:?}");
            assert!(!dtype.base().is_ref(), "{dtype:?}");
        }
    }

    #[test]
    fn base_and_reference_lead_to_each_other() {
        for &dtype in DataType::ALL {
            let Some(reference) = dtype.to_ref() else {
                assert_eq!(dtype, DataType::Invalid);
                continue;
            };
            assert!(reference.is_ref());
            assert_eq!(reference.base(), dtype.base());
        }
    }

    #[test]
    fn names_lead_back() {
        for &dtype in DataType::ALL {
            assert_eq!(DataType::from_str_name(dtype.as_str_name()), Some(dtype));
            assert_eq!(DataType::try_from(dtype as i32), Ok(dtype));
        }
        assert_eq!(DataType::from_str_name("DT_FLOAT_REF_REF"), None);
        assert!(DataType::try_from(100).is_err(), "DT_INVALID has no reference form");
        assert!(DataType::try_from(34).is_err());
    }
}
