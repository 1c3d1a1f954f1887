//~ `bool` cannot be summed
//~ count where a mask is true with `zip((&mask,)).count(|&set| set)`
fn main() {
    let mask = ndarray::array![true, false];
    let _ = simulcast::sum_to_shape(&mask, ());
}
