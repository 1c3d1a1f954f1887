//~ needs program
//~ operands are `&array`, a view, or a number, all of one element type
fn main() {
    let x = ndarray::array![1.0, 2.0];
    let _ = simulcast::ops::add(&x, vec![1.0, 2.0]);
}
