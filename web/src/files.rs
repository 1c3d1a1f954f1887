//! Files that were chosen beside a model: JavaScript has them, and hands over what is asked for.

use std::sync::Arc;

use simulcast_onnx::ExternalFiles;

/// The files that the page was given.
#[derive(Debug)]
struct Chosen;

/// The files that were chosen beside the model.
pub(crate) fn chosen() -> Arc<dyn ExternalFiles> {
    Arc::new(Chosen)
}

impl ExternalFiles for Chosen {
    fn size(&self, location: &str) -> Option<u64> {
        host::size(location)
    }

    fn read(&self, location: &str, offset: u64, bytes: &mut [u8]) -> Result<(), String> {
        match host::read(location, offset, bytes) {
            true => Ok(()),
            false => Err("the browser cannot read it".into()),
        }
    }
}

#[cfg(target_family = "wasm")]
mod host {
    #[link(wasm_import_module = "host")]
    unsafe extern "C" {
        /// The size of a file, below 0 where there is none.
        fn file_size(name: *const u8, name_len: usize) -> i64;
        /// Whether so many bytes from that place on were written.
        fn file_read(name: *const u8, name_len: usize, from: u64, to: *mut u8, len: usize) -> u32;
    }

    pub(super) fn size(name: &str) -> Option<u64> {
        // SAFETY: the name's bytes are read during the call alone.
        u64::try_from(unsafe { file_size(name.as_ptr(), name.len()) }).ok()
    }

    pub(super) fn read(name: &str, from: u64, to: &mut [u8]) -> bool {
        // SAFETY: the name's bytes are read and those of `to` written, no more of either, during the call alone.
        unsafe { file_read(name.as_ptr(), name.len(), from, to.as_mut_ptr(), to.len()) != 0 }
    }
}

/// Elsewhere, in the tests of this crate, none are chosen.
#[cfg(not(target_family = "wasm"))]
mod host {
    pub(super) fn size(_: &str) -> Option<u64> {
        None
    }

    pub(super) fn read(_: &str, _: u64, _: &mut [u8]) -> bool {
        false
    }
}
