//~ `&{float}` is no array that can be broadcast
fn main() {
    let _ = simulcast::broadcast_to(&2.0, (2, 3));
}
