//! Kernels of every kind, compiled by NVRTC, which needs neither a driver nor a device: `cargo xtask test gpu-kernels`.
//!
//! `SIMULCAST_NVRTC` names the library; without it there is nothing to do. `SIMULCAST_KERNELS` says how many of the
//! matrix's kernels are compiled, spread over all of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use simulcast_cuda::{Compiler, Target, samples};

#[test]
fn kernels_of_every_kind_are_compiled() {
    let Some(library) = std::env::var_os("SIMULCAST_NVRTC") else { return };
    let compiler = Compiler::load(&[library]).expect("NVRTC");
    let all = samples();
    assert!(all.len() > 3000, "{} kernels in the matrix", all.len());
    let wanted = std::env::var("SIMULCAST_KERNELS").ok().and_then(|own| own.parse().ok());
    let step = all.len().div_ceil(wanted.unwrap_or(all.len()).max(1));
    let chosen: Vec<_> = all.iter().step_by(step).collect();
    let (next, threads) = (AtomicUsize::new(0), std::thread::available_parallelism());
    std::thread::scope(|scope| {
        for _ in 0..threads.map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                while let Some(sample) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let made = compiler.compiled(&sample.text, Target::Ptx(80));
                    match made {
                        Ok(code) => assert!(code.starts_with(b"//"), "{}: no PTX", sample.name),
                        Err(error) => panic!("{}: {error}", sample.name),
                    }
                }
            });
        }
    });
    println!("{} of {} kernels, NVRTC {:?}", chosen.len(), all.len(), compiler.version());
}
