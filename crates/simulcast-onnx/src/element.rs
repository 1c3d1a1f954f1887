//! Element types: what an ONNX tensor can hold.

use std::fmt;

macro_rules! element_types {
    ($($variant:ident = $code:literal, $name:literal, $bits:literal;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ElementType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl ElementType {
            /// The type with ONNX's number for it.
            #[must_use]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// ONNX's number for it.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// ONNX's name for it, in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The bits of an element; `None` for strings, which have no fixed size.
            #[must_use]
            pub const fn bits(self) -> Option<usize> {
                let bits: usize = match self {
                    $(Self::$variant => $bits,)*
                };
                if bits == 0 { None } else { Some(bits) }
            }
        }
    };
}

element_types! {
    F32 = 1, "float32", 32;
    U8 = 2, "uint8", 8;
    I8 = 3, "int8", 8;
    U16 = 4, "uint16", 16;
    I16 = 5, "int16", 16;
    I32 = 6, "int32", 32;
    I64 = 7, "int64", 64;
    String = 8, "string", 0;
    Bool = 9, "bool", 8;
    F16 = 10, "float16", 16;
    F64 = 11, "float64", 64;
    U32 = 12, "uint32", 32;
    U64 = 13, "uint64", 64;
    Complex64 = 14, "complex64", 64;
    Complex128 = 15, "complex128", 128;
    BF16 = 16, "bfloat16", 16;
    F8E4M3FN = 17, "float8e4m3fn", 8;
    F8E4M3FNUZ = 18, "float8e4m3fnuz", 8;
    F8E5M2 = 19, "float8e5m2", 8;
    F8E5M2FNUZ = 20, "float8e5m2fnuz", 8;
    U4 = 21, "uint4", 4;
    I4 = 22, "int4", 4;
    F4E2M1 = 23, "float4e2m1", 4;
    F8E8M0 = 24, "float8e8m0", 8;
    U2 = 25, "uint2", 2;
    I2 = 26, "int2", 2;
}

impl ElementType {
    /// The type of that name.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        (1..=26).filter_map(Self::from_code).find(|element| element.name() == name)
    }

    /// The type of that name, as opsets below 6 wrote it in `Cast`: `FLOAT`, `INT64`.
    #[must_use]
    pub(crate) fn from_legacy_name(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "FLOAT" => Some(Self::F32),
            "DOUBLE" => Some(Self::F64),
            _ => (1..=26)
                .filter_map(Self::from_code)
                .find(|element| element.name().eq_ignore_ascii_case(name)),
        }
    }

    /// The bytes that so many elements take, sub-byte elements packed; `None` for strings and where
    /// it is more than can be counted.
    #[must_use]
    pub fn bytes(self, elements: usize) -> Option<usize> {
        let bits = self.bits()?;
        match bits {
            8.. => elements.checked_mul(bits / 8),
            _ => Some(elements.div_ceil(8 / bits)),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_and_sizes_belong_together() {
        for code in 1..=26 {
            assert_eq!(ElementType::from_code(code).map(ElementType::code), Some(code));
        }
        assert_eq!((ElementType::from_code(0), ElementType::from_code(27)), (None, None));
        assert_eq!(ElementType::from_legacy_name("FLOAT"), Some(ElementType::F32));
        assert_eq!(ElementType::from_legacy_name("INT64"), Some(ElementType::I64));
        assert_eq!(ElementType::from_legacy_name("FLOAT128"), None);
        assert_eq!(ElementType::I4.bytes(3), Some(2));
        assert_eq!(ElementType::I2.bytes(5), Some(2));
        assert_eq!(ElementType::F64.bytes(usize::MAX), None);
        assert_eq!(ElementType::String.bytes(3), None);
    }
}
