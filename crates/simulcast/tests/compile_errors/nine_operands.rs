//~ is no tuple of arrays
//~ not one to eight arrays in a tuple
fn main() {
    let x = ndarray::array![1.0, 2.0];
    let _ = simulcast::zip((&x, &x, &x, &x, &x, &x, &x, &x, &x)).shape();
}
