//! The interface to JavaScript: numbers and memory, no glue that a tool would have to generate.
//!
//! ```text
//!  room(n)                     room for n bytes, to be written by the caller
//!  ask(request, n, file, m)    both were given by `room` and are taken back; answers
//!  answer_at(), answer_len()   where the answer's JSON lies, until the next `ask`
//!  file_at(), file_len()       where its file lies, until the next `ask`
//!
//!  host.file_size, file_read   imported: files beside a model, in `files.rs`
//! ```

use std::cell::RefCell;

use crate::{Reply, answer};

thread_local! {
    static LAST: RefCell<(String, Vec<u8>)> = const { RefCell::new((String::new(), Vec::new())) };
}

/// Room for that many bytes; null where there is none.
#[unsafe(no_mangle)]
extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut made: Vec<u8> = Vec::new();
    if made.try_reserve_exact(bytes).is_err() {
        return std::ptr::null_mut();
    }
    made.resize(bytes, 0);
    Box::into_raw(made.into_boxed_slice()).cast()
}

/// The bytes that `room` gave room for.
///
/// # Safety
///
/// `at` is what `room(bytes)` returned, and not null; it is given back once.
unsafe fn given(at: *mut u8, bytes: usize) -> Vec<u8> {
    // SAFETY: `room` made it of a boxed slice of that many bytes, and leaked it.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, bytes)) }.into_vec()
}

/// Answers a request with a file, which may have no bytes.
///
/// # Safety
///
/// Both were given by `room` for that many bytes, are not null, and are not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn ask(request: *mut u8, request_len: usize, file: *mut u8, file_len: usize) {
    // SAFETY: as the caller promises.
    let (request, file) = unsafe { (given(request, request_len), given(file, file_len)) };
    // The last answer goes before the next is made.
    LAST.with_borrow_mut(|last| *last = (String::new(), Vec::new()));
    let Reply { json, attachment } = answer(&String::from_utf8_lossy(&request), file);
    LAST.with_borrow_mut(|last| *last = (json.to_string(), attachment));
}

/// Where the JSON of the answer lies.
#[unsafe(no_mangle)]
extern "C" fn answer_at() -> *const u8 {
    LAST.with_borrow(|last| last.0.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
extern "C" fn answer_len() -> usize {
    LAST.with_borrow(|last| last.0.len())
}

/// Where the file of the answer lies.
#[unsafe(no_mangle)]
extern "C" fn file_at() -> *const u8 {
    LAST.with_borrow(|last| last.1.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
extern "C" fn file_len() -> usize {
    LAST.with_borrow(|last| last.1.len())
}
