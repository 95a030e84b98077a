// One pass of a stable sort by digits of four bits, over blocks of lines: `count` tells how often
// each digit occurs in a block, `move_all` brings the elements to their places, given running sums
// of those counts by line, digit and block. An invocation takes ITEMS neighbours.
override LONG_KEYS: bool = false;
// Whether the digit is one of the higher words.
override HIGH: bool = false;

struct Params {
    length: u32,
    blocks: u32, // of a line
    groups: u32, // blocks of all lines
    shift: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> high_keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> positions: array<u32>;
@group(0) @binding(4) var<storage, read> from_keys: array<u32>;
@group(0) @binding(5) var<storage, read> from_high: array<u32>;
@group(0) @binding(6) var<storage, read> from_positions: array<u32>;
@group(0) @binding(7) var<storage, read> ends: array<u32>;

const RADIX: u32 = 16u;
const CELLS: u32 = RADIX * THREADS;
// For each digit and invocation how many there are, and then where its first one goes in the block.
var<workgroup> cells: array<u32, CELLS>;
var<workgroup> sums: array<u32, THREADS>;
// Where each digit begins in the block.
var<workgroup> first: array<u32, 17>;

fn digit(at: u32) -> u32 {
    var w = 0u;
    if (HIGH) { w = from_high[at]; } else { w = from_keys[at]; }
    return (w >> p.shift) & (RADIX - 1u);
}

// The digits of an invocation's elements, all read before any is used; RADIX where there is none.
fn digits(start: u32, end: u32) -> array<u32, ITEMS> {
    var all: array<u32, ITEMS>;
    for (var i = 0u; i < ITEMS; i++) { // unroll ITEMS
        all[i] = RADIX;
        if (start + i < end) { all[i] = digit(start + i); }
    }
    return all;
}

fn tally(all: array<u32, ITEMS>, local: u32) {
    for (var d = 0u; d < RADIX; d++) { cells[d * THREADS + local] = 0u; }
    for (var i = 0u; i < ITEMS; i++) { // unroll ITEMS
        if (all[i] < RADIX) { cells[all[i] * THREADS + local] += 1u; }
    }
    workgroupBarrier();
    // An invocation sums RADIX cells in a row.
    let begin = local * RADIX;
    var sum = 0u;
    for (var i = 0u; i < RADIX; i++) { sum += cells[begin + i]; }
    var before = sum;
    for (var step = 1u; step < THREADS; step *= 2u) {
        sums[local] = before;
        workgroupBarrier();
        if (local >= step) { before += sums[local - step]; }
        workgroupBarrier();
    }
    if (local == THREADS - 1u) { first[RADIX] = before; }
    before -= sum;
    for (var i = 0u; i < RADIX; i++) {
        let n = cells[begin + i];
        cells[begin + i] = before;
        before += n;
    }
    workgroupBarrier();
    if (local < RADIX) { first[local] = cells[local * THREADS]; }
    workgroupBarrier();
}

@compute @workgroup_size(THREADS)
fn count(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.groups) { return; }
    let line = g / p.blocks;
    let block = g % p.blocks;
    let end = line * p.length + min(p.length, (block + 1u) * THREADS * ITEMS);
    let start = min(end, line * p.length + (block * THREADS + local) * ITEMS);
    tally(digits(start, end), local);
    if (local < RADIX) {
        keys[(line * RADIX + local) * p.blocks + block] = first[local + 1u] - first[local];
    }
}

@compute @workgroup_size(THREADS)
fn move_all(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.groups) { return; }
    let line = g / p.blocks;
    let block = g % p.blocks;
    let end = line * p.length + min(p.length, (block + 1u) * THREADS * ITEMS);
    let start = min(end, line * p.length + (block * THREADS + local) * ITEMS);
    let all = digits(start, end);
    var kept: array<vec3<u32>, ITEMS>;
    for (var i = 0u; i < ITEMS; i++) { // unroll ITEMS
        if (all[i] < RADIX) {
            kept[i] = vec3(from_keys[start + i], 0u, from_positions[start + i]);
            if (LONG_KEYS) { kept[i].y = from_high[start + i]; }
        }
    }
    tally(all, local);
    for (var i = 0u; i < ITEMS; i++) { // unroll ITEMS
        let d = all[i];
        if (d < RADIX) {
            let slot = cells[d * THREADS + local];
            cells[d * THREADS + local] = slot + 1u;
            // The last place of this digit in this block, less those of it that come later.
            let behind = ends[(line * RADIX + d) * p.blocks + block];
            let to = line * p.length + behind - (first[d + 1u] - slot);
            keys[to] = kept[i].x;
            if (LONG_KEYS) { high_keys[to] = kept[i].y; }
            positions[to] = kept[i].z;
        }
    }
}
