//! Plain old data: numbers, `bool`, `char` and complex numbers.
//!
//! A closure may be given references to copies of such elements, so that strided operands can be packed into a contiguous
//! tile first. With interior mutability a closure could tell the copy from the element, so the list is closed.

use std::any::TypeId;
use std::marker::PhantomData;

/// Whether `T` is plain old data.
#[inline(always)]
pub fn is_plain<T>() -> bool {
    let id = id::<T>();
    #[cfg(feature = "half")]
    if id == TypeId::of::<half::f16>() || id == TypeId::of::<half::bf16>() {
        return true;
    }
    macro_rules! any {
        ($($type:ty)*) => { $(id == TypeId::of::<$type>())||* };
    }
    any!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 isize usize bool i128 u128 char [u32; 2]
        [u64; 2] num_complex::Complex<f32> num_complex::Complex<f64>)
}

/// Whether `T` is `bool`.
#[inline(always)]
pub fn is_bool<T>() -> bool {
    id::<T>() == TypeId::of::<bool>()
}

/// The `TypeId` of a type that may borrow, with its lifetimes erased.
#[inline(always)]
fn id<T>() -> TypeId {
    trait Identity {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Identity for PhantomData<T> {
        #[inline(always)]
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let it: &dyn Identity = &PhantomData::<T>;
    // SAFETY: only the lifetime bound of the trait object changes, and `id` reads no data: it
    // answers for the type with its lifetimes erased, as every `TypeId` does.
    let it = unsafe { std::mem::transmute::<&dyn Identity, &(dyn Identity + 'static)>(it) };
    it.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain_and_nothing_that_can_change_or_borrow_is() {
        assert!(is_plain::<f32>() && is_plain::<bool>() && is_plain::<char>());
        assert!(is_bool::<bool>() && !is_bool::<u8>() && !is_bool::<&bool>());
        #[cfg(feature = "half")]
        assert!(is_plain::<half::f16>() && is_plain::<half::bf16>());
        assert!(!is_plain::<String>() && !is_plain::<&u8>() && !is_plain::<std::cell::Cell<u8>>());
        assert!(!is_plain::<std::sync::atomic::AtomicU32>() && !is_plain::<[f32; 2]>());
    }
}
