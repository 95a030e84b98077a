// Writing `y`, whose format is `Y`, where every element is a whole word, or those of a word are stored
// together. Each invocation owns its elements.
fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v);
    let w = word(Y, i);
    y[w] = bits.x;
    if (wide(Y) == 1u) { y[w + 1u] = bits.y; }
}
// These bits of a word, whose others nobody writes.
fn store_word(w: u32, bits: u32, mask: u32) {
    var v = bits;
    if (mask != 0xffffffffu) { v |= y[w] & ~mask; }
    y[w] = v;
}
// Elements i, which is even where two share a word, and i + 1.
fn store_two(i: u32, a: Acc, b: Acc) {
    if (lane_log(Y) == 1u) {
        y[word(Y, i)] = (encode(Y, a).x & 0xffffu) | (encode(Y, b).x << 16u);
        return;
    }
    store_y(i, a);
    store_y(i + 1u, b);
}
// Element i, which is even where two share a word, without the next one, which nobody writes.
fn store_last(i: u32, v: Acc) {
    if (lane_log(Y) == 1u) {
        store_word(word(Y, i), encode(Y, v).x & 0xffffu, 0xffffu);
        return;
    }
    store_y(i, v);
}
fn y_word(w: u32) -> u32 {
    return y[w];
}
