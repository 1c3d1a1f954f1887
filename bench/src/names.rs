//! The engine's names for programs. Where this benchmark is compiled with an older revision, the names of now stand for
//! those of then.

#![allow(
    clippy::wildcard_imports,
    reason = "a name moves between modules from one revision to the next"
)]

#[cfg(not(older_names))]
pub use simulcast::{program::*, types::*, *};

#[cfg(older_names)]
pub use simulcast::{Program as TypedProgram, *};

/// A program's call, by the names of now.
#[cfg(older_names)]
pub trait Bind {
    fn bind<'r>(&'r self, operands: &'r [AnyView<'r>]) -> Run<'r>;
}

#[cfg(older_names)]
impl Bind for TypedProgram {
    fn bind<'r>(&'r self, operands: &'r [AnyView<'r>]) -> Run<'r> {
        self.on(operands)
    }
}

/// Where the results of a call go, by the names of now.
#[cfg(older_names)]
pub trait Results {
    fn compute(&self) -> Result<AnyArray, ProgramError>;
    fn write(&self, out: &mut AnyViewMut<'_>) -> Result<(), ProgramError>;
}

#[cfg(older_names)]
impl Results for Run<'_> {
    fn compute(&self) -> Result<AnyArray, ProgramError> {
        self.collect()
    }

    fn write(&self, out: &mut AnyViewMut<'_>) -> Result<(), ProgramError> {
        self.collect_into(out)
    }
}
