// Writing `y`, whose format is `Y`, where elements share words. Each invocation owns its elements.
fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v).x << lane_bit(Y, i);
    let w = word(Y, i);
    atomicXor(&y[w], (atomicLoad(&y[w]) ^ bits) & (lane_mask(Y) << lane_bit(Y, i)));
}
fn store_two(i: u32, a: Acc, b: Acc) {
    store_y(i, a);
    store_y(i + 1u, b);
}
fn y_word(w: u32) -> u32 {
    return atomicLoad(&y[w]);
}
