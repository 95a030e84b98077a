// Storing a contiguous result of `n` elements, which begins at element `offset` of `y`: `element(i)` is that of
// number i. With WORDS an invocation has all of a word, else one element.
const PER_WORD: u32 = select(select(1u, 2u, Y == I16 || Y == F16 || Y == BF16), 4u, Y <= I8);
const AT_ONCE: u32 = select(1u, PER_WORD, WORDS);
fn store_each(id: u32, offset: u32, n: u32) {
    let first = (offset / AT_ONCE + id) * AT_ONCE;
    var bits = 0u;
    var owned = 0u;
    for (var k = 0u; k < AT_ONCE; k++) { // unroll AT_ONCE
        // What is in front of the first element counts as behind the last one.
        let i = first + k - offset;
        if (i < n) {
            let v = element(i);
            if (WORDS) {
                let mask = lane_mask(Y) << lane_bit(Y, k);
                bits |= (encode(Y, v).x << lane_bit(Y, k)) & mask;
                owned |= mask;
            } else {
                store_y(first, v);
            }
        }
    }
    if (WORDS && owned != 0u) { store_word(first / AT_ONCE, bits, owned); }
}
