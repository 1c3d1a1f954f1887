//~ is no array that can be broadcast
//~ an operand is `&array`, or a view such as `array.view()`; an output is passed to `map_into` or `update`
fn main() {
    let (mut x, y) = (ndarray::array![1.0, 2.0], ndarray::array![1.0, 2.0]);
    simulcast::zip((&mut x, &y)).for_each(|x, y| *x += y);
}
