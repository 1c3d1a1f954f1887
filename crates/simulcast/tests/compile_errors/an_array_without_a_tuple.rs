//~ is no tuple of arrays
//~ operands are passed as one tuple of references or views: `(&a, &b)`; one alone is `(&a,)`
fn main() {
    let x = ndarray::array![1.0, 2.0];
    let _ = simulcast::zip(&x).map(|x| x * 2.0);
}
