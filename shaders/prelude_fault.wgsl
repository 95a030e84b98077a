// An index out of range cannot raise in a kernel: it is noted in `fault` for the next read, with
// the op (`p.who`) and the dispatch that found it.
fn complain(i: i32, size: u32) {
    if (atomicExchange(&fault[0], 1u) == 0u) {
        atomicStore(&fault[1], bitcast<u32>(i));
        atomicStore(&fault[2], size);
        atomicStore(&fault[3], p.who);
        atomicStore(&fault[4], p.dispatch);
    }
}
