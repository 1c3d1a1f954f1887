//! How long resolution takes: `cargo xtask bench core`.

use divan::{Bencher, black_box};
use simulcast_core::{Limits, Rule, resolve, resolve_into};

fn main() {
    divan::main();
}

const PAIR: [&[usize]; 2] = [&[8, 1, 6, 1], &[8, 7, 1, 5]];

/// The floor: the size rule written out for two shapes of one rank, without anything else.
#[divan::bench]
fn hand_written_pair_of_rank_4(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let [a, b] = black_box(PAIR);
        let mut out = [0; 4];
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = match (a, b) {
                _ if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return None,
            };
        }
        Some(out)
    });
}

#[divan::bench]
fn resolve_into_pair_of_rank_4(bencher: Bencher<'_, '_>) {
    let mut out = [0; 4];
    bencher.bench_local(|| resolve_into(Rule::Numpy, black_box(&PAIR), &mut out).map(<[_]>::len));
}

#[divan::bench]
fn resolve_pair_of_rank_4(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| resolve(Rule::Numpy, black_box(&PAIR)));
}

#[divan::bench]
fn findings_of_a_pair_of_rank_4(bencher: Bencher<'_, '_>) {
    let plan = resolve(Rule::Numpy, &PAIR).expect("a plan");
    bencher.bench_local(|| black_box(&plan).findings(&Limits::default()));
}

#[divan::bench]
fn error_with_fixes_of_a_pair(bencher: Bencher<'_, '_>) {
    let pair: [&[usize]; 2] = [&[2, 3, 4], &[2, 4]];
    bencher.bench_local(|| resolve(Rule::Numpy, black_box(&pair)));
}

fn many() -> Vec<[usize; 4]> {
    (0..100_000).map(|m| if m % 2 == 0 { [8, 1, 6, 1] } else { [1, 7, 1, 5] }).collect()
}

#[divan::bench]
fn resolve_into_100_000_operands_of_rank_4(bencher: Bencher<'_, '_>) {
    let (shapes, mut out) = (many(), [0; 4]);
    bencher.bench_local(|| resolve_into(Rule::Numpy, black_box(&shapes), &mut out).map(<[_]>::len));
}

#[divan::bench]
fn resolve_100_000_operands_of_rank_4(bencher: Bencher<'_, '_>) {
    let shapes = many();
    bencher.bench_local(|| resolve(Rule::Numpy, black_box(&shapes)));
}
