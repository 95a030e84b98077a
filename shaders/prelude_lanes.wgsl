// Writing `y`, whose format is `Y`, where elements share words. Each invocation owns its elements.
fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v).x << lane_bit(Y, i);
    store_word(word(Y, i), bits, lane_mask(Y) << lane_bit(Y, i));
}
fn store_word(w: u32, bits: u32, mask: u32) {
    atomicXor(&y[w], (atomicLoad(&y[w]) ^ bits) & mask);
}
fn store_two(i: u32, a: Acc, b: Acc) {
    store_y(i, a);
    store_y(i + 1u, b);
}
fn store_last(i: u32, v: Acc) {
    store_y(i, v);
}
fn y_word(w: u32) -> u32 {
    return atomicLoad(&y[w]);
}
