//! The environment variables that the engine reads, checked before they are used.

use std::ffi::OsStr;
use std::fmt;

use simulcast_kernels::cpu::level::Level;
use simulcast_threads::parse_threads;

/// An environment variable whose value cannot be read.
///
/// ```
/// use std::ffi::OsStr;
/// use simulcast::EnvironmentError;
///
/// let error = EnvironmentError::new("SIMULCAST_LEVEL", OsStr::new("sse9"), "baseline, avx2 or avx512");
/// assert_eq!((error.name(), error.value()), ("SIMULCAST_LEVEL", "sse9"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentError {
    name: &'static str,
    value: String,
    expected: &'static str,
}

impl EnvironmentError {
    /// A value of a variable that is not what is expected there, as a noun with its article.
    #[must_use]
    pub fn new(name: &'static str, value: &OsStr, expected: &'static str) -> Self {
        Self { name, value: value.to_string_lossy().into_owned(), expected }
    }

    /// The name of the variable.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its value; bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// `the environment variable SIMULCAST_LEVEL is "sse9", not baseline, avx2 or avx512`
impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, expected } = self;
        write!(f, "the environment variable {name} is {value:?}, not {expected}")
    }
}

impl std::error::Error for EnvironmentError {}

/// Checks that the variables that the engine reads (`SIMULCAST_NUM_THREADS`, `SIMULCAST_LEVEL`) can be read. Functions that
/// use them have no way to say so, and take the default for what they cannot read: a program calls this when it starts, as
/// the command and the Python package do.
///
/// An instruction set that this machine does not have, and a number of threads that is larger than
/// [`MAX_THREADS`](simulcast_threads::MAX_THREADS), are no errors: programs are moved between machines. An empty value is
/// none.
///
/// ```
/// if let Err(error) = simulcast::check_environment() {
///     eprintln!("error: {error}");
/// }
/// ```
///
/// # Errors
///
/// Names the first variable that cannot be read, and its value.
pub fn check_environment() -> Result<(), EnvironmentError> {
    let checked =
        |name: &'static str, expected, is_fine: fn(&str) -> bool| match std::env::var_os(name) {
            Some(value) if !value.is_empty() && !value.to_str().is_some_and(is_fine) => {
                Err(EnvironmentError::new(name, &value, expected))
            }
            _ => Ok(()),
        };
    checked("SIMULCAST_NUM_THREADS", "a number of threads from 1 on", |text| {
        parse_threads(text).is_some()
    })?;
    checked("SIMULCAST_LEVEL", "baseline, avx2 or avx512", |text| Level::NAMES.contains(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_name_and_value() {
        let error = EnvironmentError::new("SIMULCAST_LEVEL", OsStr::new("sse9"), "avx2");
        assert_eq!(
            (error.name(), error.value(), error.to_string().as_str()),
            (
                "SIMULCAST_LEVEL",
                "sse9",
                "the environment variable SIMULCAST_LEVEL is \"sse9\", not avx2"
            )
        );
        // What the tests run with can be read.
        assert_eq!(check_environment(), Ok(()));
    }
}
