//! Checks whether the keys of a table would collide in a hash table.
//!
//! Python spreads numbers, and tuples of them, by a hash that anyone can compute, so a file can be
//! made whose every key meets all others. This plays the search for a place in tables of each size
//! that Python may choose, and counts.

/// Fewer keys than this cost little in whatever order.
pub const FEW: usize = 128;
/// Searches for one key: numbers with all their low bits equal need about ten.
const TRIES: usize = 24;

/// The tables of one dict or set while it grows.
pub struct Crowd {
    /// Places tried one after the other before the search jumps.
    run: usize,
    tables: Vec<Vec<bool>>,
    keys: Vec<i64>,
    spent: usize,
}

impl Crowd {
    pub fn of_dict() -> Crowd {
        Crowd::new(0)
    }
    pub fn of_set() -> Crowd {
        Crowd::new(9)
    }
    fn new(run: usize) -> Crowd {
        Crowd {
            run,
            tables: Vec::new(),
            keys: Vec::new(),
            spent: 0,
        }
    }

    /// Adds a key by its hash; false once the keys crowd.
    pub fn add(&mut self, hash: i64) -> bool {
        self.keys.push(hash);
        let n = self.keys.len();
        if n < FEW {
            return true;
        }
        // Each key goes into three tables, and again into larger ones as they grow.
        let most = 6 * TRIES * (1 + self.run) * n;
        // Tables are at most two thirds full, and after growing may be four times as large.
        let least = (n + n / 2 + 1).next_power_of_two();
        self.tables.retain(|t| t.len() >= least);
        for power in 0..3 {
            let fresh = self.tables.len() <= power;
            if fresh {
                self.tables.push(vec![false; least << power]);
            }
            let table = &mut self.tables[power];
            for &hash in &self.keys[if fresh { 0 } else { n - 1 }..] {
                self.spent += put(table, hash, self.run);
                if self.spent > most {
                    return false;
                }
            }
        }
        true
    }
}

/// Puts a hash into a table; returns the places tried. An equal hash may be another key's.
fn put(table: &mut [bool], hash: i64, run: usize) -> usize {
    let mask = table.len() - 1;
    let (mut i, mut rest) = (hash as usize & mask, hash as u64);
    let mut tried = 0;
    loop {
        for j in i..=(i + run).min(mask) {
            tried += 1;
            if !table[j] {
                table[j] = true;
                return tried;
            }
        }
        rest >>= 5;
        i = (i * 5 + 1 + rest as usize) & mask;
    }
}
