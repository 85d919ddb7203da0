//! Elements of the quantised types.

use super::Element;

/// An element of a quantised type: an integer, its code, which represents a real number. A range or a
/// scale beside the tensor says which one; no arithmetic is defined on codes alone.
pub trait Quantised: Element + Ord {
    /// Bits of a code.
    const BITS: u32;
    /// Whether codes may be negative.
    const SIGNED: bool;
    /// Least code.
    const LOWEST: i32;
    /// Greatest code.
    const HIGHEST: i32;

    /// The code.
    fn code(self) -> i32;

    /// The element with this code, or with the nearest one that the type has.
    fn saturated(code: i64) -> Self;
}

macro_rules! quantised {
    ($($(#[$doc:meta])* $name:ident($int:ty), $signed:literal;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub $int);

        impl Quantised for $name {
            const BITS: u32 = <$int>::BITS;
            const SIGNED: bool = $signed;
            const LOWEST: i32 = <$int>::MIN as i32;
            const HIGHEST: i32 = <$int>::MAX as i32;

            #[inline(always)]
            fn code(self) -> i32 {
                self.0.into()
            }

            #[inline(always)]
            fn saturated(code: i64) -> Self {
                $name(code.clamp(<$int>::MIN.into(), <$int>::MAX.into()) as $int)
            }
        }
    )*};
}

quantised! {
    /// An element of type `qint8`.
    QInt8(i8), true;
    /// An element of type `quint8`.
    QUInt8(u8), false;
    /// An element of type `qint16`.
    QInt16(i16), true;
    /// An element of type `quint16`.
    QUInt16(u16), false;
    /// An element of type `qint32`.
    QInt32(i32), true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_beyond_the_type_becomes_its_end() {
        assert_eq!(QUInt8::saturated(-1), QUInt8(0));
        assert_eq!(QUInt8::saturated(256), QUInt8(255));
        assert_eq!(QInt8::saturated(-129), QInt8(-128));
        assert_eq!(QInt32::saturated(i64::MAX), QInt32(i32::MAX));
        assert_eq!(QInt16::saturated(-5).code(), -5);
        assert_eq!((QUInt16::LOWEST, QUInt16::HIGHEST, QUInt16::BITS), (0, 65535, 16));
    }
}
