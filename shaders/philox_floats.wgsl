// Numbers of a random stream, behind philox.wgsl: of 24 bits in float32, of 53 in float64.
fn philox_long(low: u32, high: u32) -> Acc {
    return (Acc(high & 0x1fffffu) * Acc(4294967296.0) + Acc(low)) * Acc(1.1102230246251565e-16);
}
// In [0, 1).
fn philox_uniform() -> Acc {
    if (wide(ACC) == 1u) {
        let pair = philox_pair();
        return philox_long(pair.x, pair.y);
    }
    return Acc(philox_word() >> 8u) * Acc(5.9604644775390625e-8);
}
// Box and Muller's pairs: in float32 elements 2k and 2k + 1 share two words, in float64 each has four.
fn philox_normal() -> Acc {
    if (wide(ACC) == 1u) {
        let block = philox_block(position);
        let u = philox_long(block.x, block.y) + Acc(1.1102230246251565e-16);
        return m_sqrt(Acc(-2) * m_ln(u)) * m_cos(philox_long(block.z, block.w) * Acc(6.283185307179586));
    }
    let block = philox_block(position >> 2u);
    let pair = select(block.xy, block.zw, (position & 2u) != 0u);
    let u = Acc((pair.x >> 8u) + 1u) * Acc(5.9604644775390625e-8);
    let angle = Acc(pair.y >> 8u) * Acc(5.9604644775390625e-8) * Acc(6.28318531);
    let r = m_sqrt(Acc(-2) * m_ln(u));
    return r * m_sin_from(angle, 1u - (position & 1u));
}
