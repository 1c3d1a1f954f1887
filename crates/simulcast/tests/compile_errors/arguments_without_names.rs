//~ needs program
//~ is not a list of arguments by name
//~ pass pairs: `(("x", &x), ("mean", &mean))`; one pair alone: `("x", &x)`
fn main() {
    let x = ndarray::array![1.0, 2.0];
    let _ = simulcast::eval("x + 1", (&x,));
}
