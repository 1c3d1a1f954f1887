//! A product allocates little beside its result, however many rows it has.
#![cfg(feature = "product")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use simulcast_kernels::Level;
use simulcast_kernels::product::{Matrix, Out, Product};

/// The largest allocation since it was last 0.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Counted;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[test]
fn a_product_of_many_rows_and_few_columns_takes_little_memory_beside_its_result() {
    let rows = 100_000;
    for columns in [1, 7, 17] {
        let (a, b) = (vec![1_f32; rows * 2], vec![3_f32; 2 * columns]);
        let a = Matrix::new(&a, [rows, 2], [2, 1]).unwrap();
        for strides in [[1, 2], [columns, 1]] {
            let b = Matrix::new(&b, [2, columns], strides).unwrap();
            for level in Level::available() {
                let mut out = vec![0.0; rows * columns];
                LARGEST.store(0, Ordering::Relaxed);
                let to = Out::new(&mut out, [rows, columns]).unwrap();
                Product::new(a, b).unwrap().run(level, 0..rows, 0..columns, to);
                let largest = LARGEST.load(Ordering::Relaxed);
                assert!(largest <= 256 << 10, "{columns} columns, {level:?}: {largest} bytes");
                assert!(out.iter().all(|own| *own == 6.0));
            }
        }
    }
}
