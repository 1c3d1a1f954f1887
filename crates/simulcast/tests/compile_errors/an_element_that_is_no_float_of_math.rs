//~ `&f32` is no float that `math` has functions for
//~ elements come by reference: `*x`
fn main() {
    let x = ndarray::array![1.0_f32, 2.0];
    let _ = simulcast::zip((&x,)).map(|x| simulcast::math::exp(x));
}
