//! Element types by name, for arrays whose type is known only at run time.
//!
//! ```
//! # extern crate simulcast_kernels as simulcast;
//! use simulcast::{DType, Element};
//!
//! assert_eq!("float32".parse(), Ok(DType::F32));
//! assert_eq!((DType::Bf16.name(), DType::C128.size()), ("bfloat16", 16));
//! assert_eq!(f64::DTYPE, DType::F64);
//! ```

use std::fmt;
use std::str::FromStr;

use sealed::Sealed;

/// Closes [`Element`] to types of this crate.
mod sealed {
    pub trait Sealed {}
}

/// A complex number of `f32` or `f64` parts.
pub use num_complex::Complex;

/// Calls a macro with every element type: variant, Rust type, name.
#[macro_export]
macro_rules! every_dtype {
    ($call:ident) => {
        $call! {
            Bool: bool = "bool",
            I8: i8 = "int8",
            I16: i16 = "int16",
            I32: i32 = "int32",
            I64: i64 = "int64",
            U8: u8 = "uint8",
            U16: u16 = "uint16",
            U32: u32 = "uint32",
            U64: u64 = "uint64",
            F16: half::f16 = "float16",
            Bf16: half::bf16 = "bfloat16",
            F32: f32 = "float32",
            F64: f64 = "float64",
            C64: num_complex::Complex<f32> = "complex64",
            C128: num_complex::Complex<f64> = "complex128",
            String: std::string::String = "string",
        }
    };
}

/// The kind of values of a [`DType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTypeKind {
    /// True and false.
    Bool,
    /// Integers without a sign.
    Unsigned,
    /// Integers with a sign.
    Signed,
    /// Floating-point numbers.
    Float,
    /// Pairs of them.
    Complex,
    /// Text.
    String,
}

macro_rules! dtypes {
    ($($variant:ident: $type:ty = $name:literal,)*) => {
        /// The type of an array's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl DType {
            /// Every type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name that NumPy and ONNX use in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The bytes of one element in memory.
            #[must_use]
            #[inline]
            pub const fn size(self) -> usize {
                match self { $(Self::$variant => size_of::<$type>()),* }
            }

            /// The alignment of an element in memory.
            #[must_use]
            #[inline]
            pub const fn align(self) -> usize {
                match self { $(Self::$variant => align_of::<$type>()),* }
            }
        }

        $(
            impl Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$variant;
            }
        )*
    };
}

/// A Rust type that has a [`DType`].
///
/// Sealed: that the type and its name belong together is relied upon by unsafe code.
pub trait Element: Sealed + Clone + Send + Sync + 'static {
    /// Its name.
    const DTYPE: DType;
}

/// What has the size of an element of 16 bits where its own type is not compiled.
#[cfg(not(feature = "half"))]
#[allow(non_camel_case_types, dead_code, reason = "they stand for types of the crate of that name")]
mod half {
    #[derive(Clone, Copy)]
    pub(super) struct f16(u16);
    #[derive(Clone, Copy)]
    pub(super) struct bf16(u16);
}

every_dtype!(dtypes);

impl DType {
    /// The kind of its values.
    #[must_use]
    pub const fn kind(self) -> DTypeKind {
        match self {
            Self::Bool => DTypeKind::Bool,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => DTypeKind::Signed,
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => DTypeKind::Unsigned,
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => DTypeKind::Float,
            Self::C64 | Self::C128 => DTypeKind::Complex,
            Self::String => DTypeKind::String,
        }
    }

    /// Whether it is a signed or unsigned integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), DTypeKind::Signed | DTypeKind::Unsigned)
    }

    /// Whether it is a floating-point number.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// Whether it is complex.
    #[must_use]
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), DTypeKind::Complex)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`DType`]'s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDType(String);

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no element type; there are", self.0)?;
        DType::ALL.iter().try_for_each(|dtype| write!(f, " {dtype}"))
    }
}

impl std::error::Error for UnknownDType {}

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(name: &str) -> Result<Self, UnknownDType> {
        let named = Self::ALL.iter().find(|dtype| dtype.name() == name);
        named.copied().ok_or_else(|| UnknownDType(name.into()))
    }
}

/// One value of any type: a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `bool`
    Bool(bool),
    /// An integer of that type, which holds it.
    Int(DType, i128),
    /// A floating-point number of that type, which holds it.
    Float(DType, f64),
    /// A complex number of that type.
    Complex(DType, Complex<f64>),
    /// Text.
    String(String),
}

impl Scalar {
    /// Its type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        match self {
            Self::Bool(_) => DType::Bool,
            Self::Int(dtype, _) | Self::Float(dtype, _) | Self::Complex(dtype, _) => *dtype,
            Self::String(_) => DType::String,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_name() {
        for &dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(dtype.to_string(), dtype.name());
        }
        assert!("float".parse::<DType>().is_err());
        assert_eq!((DType::F16.size(), DType::Bf16.align()), (2, 2));
    }
}
