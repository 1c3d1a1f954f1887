//! New arrays on the host, of any element type, filled by somebody else.

use ndarray::{ArrayD, IxDyn};
use simulcast::{AnyArray, DType};

use crate::error::Error;
use crate::plan::bytes_of;

macro_rules! plain {
    ($dtype:expr, $shape:expr, $fill:expr; $($variant:ident: $type:ty;)*) => {
        match $dtype {
            $(DType::$variant => {
                let bytes = bytes_of($shape, $dtype);
                let lost = || Error::Layout { shape: $shape.to_vec(), given: $dtype.size() };
                let bytes = bytes.ok_or_else(lost)?;
                let count = bytes / size_of::<$type>();
                let mut elements: Vec<$type> = Vec::new();
                elements.try_reserve_exact(count).map_err(|_| lost())?;
                elements.resize(count, <$type>::default());
                $fill(elements.as_mut_ptr().cast::<u8>(), bytes)?;
                let array = ArrayD::from_shape_vec(IxDyn($shape), elements).map_err(|_| lost())?;
                Ok(AnyArray::$variant(array))
            })*
            DType::Bool | DType::String => Err(Error::Text),
        }
    };
}

/// A new array whose bytes `fill` writes; it gets their address and number.
pub(crate) fn filled(
    dtype: DType,
    shape: &[usize],
    fill: impl FnOnce(*mut u8, usize) -> Result<(), Error>,
) -> Result<AnyArray, Error> {
    if dtype == DType::Bool {
        // Bytes first: of those that another library made, any but 0 is true.
        let bytes = filled(DType::U8, shape, fill)?;
        let AnyArray::U8(bytes) = bytes else { return Err(Error::Text) };
        return Ok(AnyArray::Bool(bytes.mapv(|byte| byte != 0)));
    }
    plain! { dtype, shape, fill;
        I8: i8; I16: i16; I32: i32; I64: i64; U8: u8; U16: u16; U32: u32; U64: u64;
        F16: half::f16; Bf16: half::bf16; F32: f32; F64: f64;
        C64: simulcast::Complex<f32>; C128: simulcast::Complex<f64>;
    }
}
