// Writing `y`, whose format is `Y`. Each invocation owns its elements, which may share words.
fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v);
    let w = word(Y, i);
    if (lane_log(Y) == 0u) {
        atomicStore(&y[w], bits.x);
        if (wide(Y) == 1u) { atomicStore(&y[w + 1u], bits.y); }
    } else {
        let mask = lane_mask(Y) << lane_bit(Y, i);
        atomicXor(&y[w], (atomicLoad(&y[w]) ^ (bits.x << lane_bit(Y, i))) & mask);
    }
}
