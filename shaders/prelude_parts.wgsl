// Of rows whose parts different workgroups have: what an invocation takes of them, and the results beside those
// in y, which are of the type computed in.
struct Share {
    job: u32, // the part among those of all rows, or the row
    lane: u32,
    live: bool,
    begin: u32,
    end: u32,
    start: u32, // where the row begins in x
}

// Of elements of a part of a row.
fn share_of_part(group: vec3<u32>, groups: vec3<u32>, local: u32) -> Share {
    var job = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let live = job < p.rows * p.splits;
    // Alone in its row, an invocation has those next to it in the rows next to it, whose elements are near.
    if (LANES == 1u) { job = (job % p.rows) * p.splits + job / p.rows; }
    let row = job / p.splits;
    let begin = (job - row * p.splits) * p.part;
    let end = select(begin, min(begin + p.part, p.length), live);
    let start = p.x_offset + outer_offset(select(0u, row, live));
    return Share(job, local % LANES, live, begin, end, start);
}
// Of what the parts of a row gave.
fn share_of_row(group: vec3<u32>, groups: vec3<u32>, local: u32) -> Share {
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let live = row < p.rows;
    return Share(row, local % LANES, live, 0u, select(0u, p.splits, live), row * p.splits);
}

fn load_beside(i: u32) -> Acc {
    let w = word(ACC, i);
    return decode(ACC, parts[w], parts[w + wide(ACC)], i);
}
fn store_beside(at: u32, v: Acc) {
    let bits = encode(ACC, v);
    let w = word(ACC, p.beside_offset + at);
    beside[w] = bits.x;
    if (wide(ACC) == 1u) { beside[w + 1u] = bits.y; }
}
