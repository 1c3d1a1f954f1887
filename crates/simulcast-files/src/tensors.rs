//! The header of a `.safetensors` file: names, types, shapes and places, as JSON.
//!
//! The format's own library reads and checks it (no holes, no overlaps, sizes that fit their
//! shapes). Its length, and that the elements end where the file does, are checked here: under the
//! caller's limit, and with the numbers in the error.

use std::ops::Range;

use safetensors::tensor::{Dtype, Metadata};
use simulcast::DType;

use crate::error::FileProblem;
use crate::npy::{Coding, Header};

/// A tensor's name, what is said of it, and where in the file it is.
pub(crate) type Tensor = (String, Header, Range<usize>);

const LENGTH: usize = size_of::<u64>();

/// The tensors of a file, in the order of their elements.
pub(crate) fn read(bytes: &[u8], limit: u64) -> Result<Vec<Tensor>, FileProblem> {
    let has = bytes.len() as u64;
    let truncated = |needs| FileProblem::Truncated { part: "header", needs, has };
    let (length, rest) = bytes.split_first_chunk().ok_or_else(|| truncated(LENGTH as u64))?;
    let length = u64::from_le_bytes(*length);
    if length > limit {
        return Err(FileProblem::Limit { part: "a header", bytes: length, limit });
    }
    let (header, elements) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
        .ok_or_else(|| truncated(length.saturating_add(LENGTH as u64)))?;
    let metadata: Metadata = serde_json::from_slice(header)
        .map_err(|error| FileProblem::Safetensors { why: error.to_string() })?;
    let (needs, has) = (metadata.data_len() as u64, elements.len() as u64);
    match has.checked_sub(needs) {
        None => return Err(FileProblem::Truncated { part: "elements", needs, has }),
        Some(0) => {}
        Some(bytes) => return Err(FileProblem::Trailing { bytes }),
    }
    let start = LENGTH + header.len();
    let named = metadata.offset_keys().into_iter();
    Ok(named
        .filter_map(|name| {
            let info = metadata.info(&name)?;
            let (from, to) = info.data_offsets;
            let shape = info.shape.clone();
            let header = Header { shape, fortran: false, coding: coding(info.dtype) };
            Some((name, header, start + from..start + to))
        })
        .collect())
}

fn coding(dtype: Dtype) -> Result<Coding, FileProblem> {
    let dtype = match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::U8 => DType::U8,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::U64 => DType::U64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::C64 => DType::C64,
        other => {
            let why = "types of 4, 6 or 8 bits are not read";
            return Err(FileProblem::Element { descr: format!("{other:?}"), why });
        }
    };
    // The format is little-endian.
    Ok(Coding::Number { dtype, swap: cfg!(target_endian = "big") && dtype.size() > 1 })
}
