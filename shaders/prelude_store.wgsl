// Writing `y`, whose format is `Y`, where every element is a whole word. Each invocation owns its
// elements.
fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v);
    let w = word(Y, i);
    y[w] = bits.x;
    if (wide(Y) == 1u) { y[w + 1u] = bits.y; }
}
fn y_word(w: u32) -> u32 {
    return y[w];
}
