//! stub
use std::path::Path;
pub(crate) fn write(_out: &Path) -> Result<usize, String> {
    Ok(0)
}
