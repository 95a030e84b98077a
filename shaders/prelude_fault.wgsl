// An index out of range cannot raise in a kernel: element `at` of `index` is noted in `fault` for the next
// read, whole, with the op (`p.who`) and the dispatch that found it.
fn complain(at: u32, size: u32) {
    if (atomicExchange(&fault[0], 1u) == 0u) {
        let low = index[word(I, at)];
        let high = index[word(I, at) + wide(I)];
        let narrow = index_value(I, low, high, at);
        let long = vec2(bitcast<u32>(narrow), bitcast<u32>(narrow >> 31u));
        let words = select(long, vec2(low, high), I == I64);
        atomicStore(&fault[1], words.x);
        atomicStore(&fault[2], words.y);
        atomicStore(&fault[3], size);
        atomicStore(&fault[4], p.who);
        atomicStore(&fault[5], p.dispatch);
    }
}
