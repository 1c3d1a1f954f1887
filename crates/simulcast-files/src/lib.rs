//! Arrays in files: `.npy`, `.npz` and `.safetensors`, mapped into memory, hostile headers refused.
//!
//! A [`Store`] is an open file; its arrays are [`AnyView`](simulcast::AnyView)s that live as long as
//! it. Elements stay in the mapped file where they can be used as they lie there: aligned, in this
//! machine's byte order. Otherwise they are read once and converted. A [`Writer`] is the other way:
//! a result that is computed straight into a mapped file, which gets its name when it is whole.
//!
//! ```
//! use simulcast::{AnyArray, DType};
//! use simulcast_files::{ReadLimits, Store, write_npy};
//!
//! let path = std::env::temp_dir().join(format!("simulcast-doc-{}.npy", std::process::id()));
//! let x = ndarray::array![[1.5_f32, 2.5], [3.5, 4.5]];
//! write_npy(&path, &(&x).into())?;
//!
//! let store = Store::open(&path, &ReadLimits::default())?;
//! let view = store.get(None)?;
//! assert_eq!((view.dtype(), view.shape()), (DType::F32, &[2, 2][..]));
//! assert_eq!(view.typed::<f32>(), Some(x.view().into_dyn()));
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), simulcast_files::FileError>(())
//! ```
//!
//! What a file says is checked before it is believed: shapes against the bytes that are there, sizes
//! against overflow, archives against their checksums, and memory against the caller's [`ReadLimits`].
//! Python objects (pickles) are never read. A file that somebody else changes or shortens while it is
//! mapped is outside of what can be checked; `docs/security.md` says what is trusted.
//!
//! | in the file | here |
//! |---|---|
//! | `b1`, `i1` … `i8`, `u1` … `u8`, `f2`, `f4`, `f8`, `c8`, `c16`, either byte order | the type of that name |
//! | `V2`, which is what NumPy writes for `ml_dtypes.bfloat16` | `bfloat16` |
//! | `U`, `S` | `string`; what is not Unicode is refused |
//! | `BOOL`, `U8` … `I64`, `F16`, `BF16`, `F32`, `F64`, `C64` of safetensors | the type of that name |
//! | objects, records, dates, types of 4, 6 or 8 bits | refused |

#![warn(clippy::panic, clippy::expect_used)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod elements;
mod error;
mod npy;
mod store;
mod temporary;
mod tensors;
mod writer;
mod zip;

pub use error::{FileError, FileProblem};
pub use store::{ReadLimits, Store};
pub use temporary::Temporary;
pub use writer::{Writer, write_npy, write_npz};
