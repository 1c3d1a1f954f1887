//~ is no array that can be broadcast
//~ a `Vec` or a slice is passed as `aview1(&values)`; `aview0` and `aview1` are ndarray's
fn main() {
    let (x, y) = (ndarray::array![1.0, 2.0], vec![1.0, 2.0]);
    let _ = simulcast::zip((&x, &y)).map(|x, y| x * y);
}
