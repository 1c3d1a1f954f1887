//! Kernels against the answers of NumPy, and against themselves: patterns, places, lengths.

use super::*;

/// Runs a kernel over `f32`.
fn run(op: Op, level: Level, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0_f32; a.len()];
    let loops = kernels(op, DType::F32, level).unwrap();
    let ins = [a.as_ptr().cast(), b.as_ptr().cast(), std::ptr::null()];
    // SAFETY: three stretches of one length.
    unsafe { loops[0](out.as_mut_ptr().cast(), ins, a.len()) };
    out
}

#[test]
fn smoke() {
    for level in Level::available() {
        let a: Vec<f32> = (0_i16..37).map(f32::from).collect();
        assert_eq!(run(Op::Add, level, &a, &a)[36], 72.0);
        let half = [0.1_f64, 1e30, 65519.9, 65520.0, 5.9e-8, -0.0];
        let mut out = [half::f16::ONE; 6];
        let kernel = cast(DType::F64, DType::F16, level).unwrap();
        // SAFETY: two stretches of one length.
        unsafe { kernel(out.as_mut_ptr().cast(), [half.as_ptr().cast(); 3], 6) };
        println!("{out:?}");
    }
}
