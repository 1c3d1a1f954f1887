//~ is no array that can be broadcast
//~ a number is captured by the closure, `zip((&x,)).map(|x| x * scale)`, or passed as `aview0(&scale)`
fn main() {
    let x = ndarray::array![1.0, 2.0];
    let _ = simulcast::zip((&x, 2.0)).map(|x, scale| x * scale);
}
