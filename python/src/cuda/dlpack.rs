//! Structures of `DLPack`, and the table of C functions that a class of arrays may offer (version 1.3).

use std::ffi::{c_char, c_int, c_void};

use simulcast::DType;

/// The kind of a CUDA device, and of one whose memory the host sees too.
pub(crate) const CUDA: i32 = 2;
pub(crate) const CUDA_MANAGED: i32 = 13;

/// Of an array that must not be written to.
pub(crate) const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: i32,
    pub(crate) index: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Element {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Tensor {
    pub(crate) data: *mut c_void,
    pub(crate) place: Place,
    pub(crate) rank: i32,
    pub(crate) element: Element,
    pub(crate) shape: *mut i64,
    /// In elements; none where rows lie one after the other.
    pub(crate) strides: *mut i64,
    pub(crate) offset: u64,
}

#[repr(C)]
pub(crate) struct Managed {
    pub(crate) tensor: Tensor,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
pub(crate) struct Versioned {
    pub(crate) version: [u32; 2],
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    pub(crate) flags: u64,
    pub(crate) tensor: Tensor,
}

/// What takes an error: its context, the name of an exception, a message.
pub(crate) type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// Functions of a class of arrays, found on the class as `__dlpack_c_exchange_api__`.
#[repr(C)]
pub(crate) struct Exchange {
    pub(crate) version: [u32; 2],
    _previous: *mut c_void,
    pub(crate) allocate: Option<
        unsafe extern "C" fn(*mut Tensor, *mut *mut Versioned, *mut c_void, SetError) -> c_int,
    >,
    _managed: Option<unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> c_int>,
    pub(crate) to_python: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> c_int>,
    pub(crate) view: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    pub(crate) stream: Option<unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int>,
}

impl Tensor {
    pub(crate) const EMPTY: Self = Self {
        data: std::ptr::null_mut(),
        place: Place { kind: 0, index: 0 },
        rank: 0,
        element: Element { code: 0, bits: 0, lanes: 0 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        offset: 0,
    };
}

impl Element {
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        let code = match dtype {
            DType::String => return None,
            DType::Bool => 6,
            DType::Bf16 => 4,
            own if own.is_complex() => 5,
            own if own.is_float() => 2,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
            _ => 1,
        };
        Some(Self { code, bits: u8::try_from(8 * dtype.size()).ok()?, lanes: 1 })
    }

    pub(crate) fn dtype(self) -> Option<DType> {
        let is_own = |dtype: &DType| {
            Self::of(*dtype).is_some_and(|own| {
                (own.code, own.bits, self.lanes) == (self.code, self.bits, own.lanes)
            })
        };
        DType::ALL.iter().copied().find(is_own)
    }
}
