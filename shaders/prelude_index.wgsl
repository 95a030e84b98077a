// Reading `index`, whose format is `I`.
fn load_index(i: u32) -> i32 {
    let w = word(I, i);
    return index_value(I, index[w], index[w + wide(I)], i);
}
