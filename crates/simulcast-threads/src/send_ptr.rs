//! The one pointer of the workspace that crosses threads.

use std::fmt;

/// A raw pointer that may be sent to, and shared with, other threads.
///
/// Only the address crosses. Whoever dereferences it states why that is sound: the memory outlives the parts, elements
/// are `Sync` where they are read and `Send` where they are written, and no two parts write one element.
///
/// ```
/// use simulcast_threads::SendPtr;
///
/// let mut value = 1;
/// let pointer = SendPtr::new(&raw mut value);
/// std::thread::scope(|scope| {
///     // SAFETY: nothing else has access until the scope ends.
///     scope.spawn(move || unsafe { *pointer.get() += 1 });
/// });
/// assert_eq!(value, 2);
/// ```
pub struct SendPtr<T: ?Sized>(*mut T);

// SAFETY: an address has no thread of its own; to dereference it is unsafe, and the conditions are stated there.
unsafe impl<T: ?Sized> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized> Sync for SendPtr<T> {}

impl<T: ?Sized> SendPtr<T> {
    /// A pointer to what is written, or read.
    #[inline]
    pub const fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// A pointer to what is only read.
    #[inline]
    pub const fn reading(pointer: *const T) -> Self {
        Self(pointer.cast_mut())
    }

    /// The pointer. A closure that calls this captures the whole `SendPtr`, and so may cross threads.
    #[inline]
    pub const fn get(self) -> *mut T {
        self.0
    }
}

// Derived, they would ask the same of `T`.
impl<T: ?Sized> Clone for SendPtr<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for SendPtr<T> {}

impl<T: ?Sized> fmt::Debug for SendPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
