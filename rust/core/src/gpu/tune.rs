//! Which tile a product takes: by a rule at first, then by the time that each takes, which later
//! runs know. The choice changes no bit of a result.

use super::adapter::Info;
use super::clock;
use super::key::{key, Key, Map};
use super::stored;
use super::tile::{Tile, TILES};
use super::Gpu;
use crate::bail;
use crate::error::Result;
use parking_lot::Mutex;
use std::fmt::Write;
use std::hash::Hash;
use std::path::{Path, PathBuf};

/// Products of a kind until the tiles are timed, and times of each tile, of which the least counts.
const PATIENCE: u32 = 3;
const TIMES: usize = 3;
/// What another tile than the rule's has to be quicker by: clocks are no better than that.
const MARGIN: f64 = 0.97;

/// What `PYTENSORLIB_TUNE` says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// `0`: what was timed before counts for nothing either.
    Never,
    /// `1`: at the third product of a kind, where the adapter is no software.
    Third,
    /// `full`: at the first, on every adapter.
    First,
}

impl When {
    fn told() -> Result<When> {
        Ok(match std::env::var("PYTENSORLIB_TUNE").as_deref() {
            Err(_) | Ok("" | "1") => When::Third,
            Ok("0") => When::Never,
            Ok("full") => When::First,
            Ok(other) => {
                bail!(
                    Value,
                    "PYTENSORLIB_TUNE: expected 0, 1 or full, but found {other:?}"
                )
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// How many there were.
    Seen(u32),
    Chosen(Tile),
}

/// What is known of an adapter's products.
pub(super) struct Tuned {
    when: When,
    path: Option<PathBuf>,
    known: Mutex<Map<Key, Known>>,
}

impl Tuned {
    /// With what earlier runs found out.
    pub fn open(info: &Info) -> Result<Tuned> {
        let mut when = When::told()?;
        let timed = info.features.contains(wgpu::Features::TIMESTAMP_QUERY);
        if !timed || (info.software && when != When::First) {
            when = When::Never;
        }
        // Other kernels take other times.
        let [kernels, _] = key(&(env!("CARGO_PKG_VERSION"), format!("{TILES:?}").as_str()));
        let name = format!("{}-{kernels:016x}.tiles", stored::name(info));
        let folder = stored::folder().filter(|_| when != When::Never);
        let path = folder.map(|folder| folder.join(name));
        let known = path.as_deref().map_or_else(Map::default, read);
        Ok(Tuned {
            when,
            path,
            known: Mutex::new(known),
        })
    }

    /// Writes what was found out beside what others have written. Nothing is lost but time where
    /// that does not succeed.
    pub fn save(&self) -> std::io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let before = read(path);
        let mut all = before.clone();
        let known = self.known.lock();
        all.extend(known.iter().filter(|k| matches!(k.1, Known::Chosen(_))));
        drop(known);
        if all == before {
            return Ok(());
        }
        let mut text = String::new();
        for (key, known) in &all {
            if let Known::Chosen(tile) = known {
                let _ = writeln!(
                    text,
                    "{:016x} {:016x} {} {}",
                    key[0], key[1], tile.m, tile.n
                );
            }
        }
        stored::replace(path, text.as_bytes())
    }
}

/// What a file holds; lines that mean nothing are left out.
fn read(path: &Path) -> Map<Key, Known> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut half = || u64::from_str_radix(words.next()?, 16).ok();
        let key = [half()?, half()?];
        let mut size = || words.next()?.parse::<usize>().ok();
        let (m, n) = (size()?, size()?);
        let tile = TILES.into_iter().find(|t| (t.m, t.n) == (m, n))?;
        Some((key, Known::Chosen(tile)))
    };
    text.lines().filter_map(line).collect()
}

/// Sizes that are alike are of one kind.
pub fn bucket(size: usize) -> u32 {
    usize::BITS - size.leading_zeros()
}

/// The tile of a product of a kind: the rule's, until `run`, which may be called any number of
/// times, has been timed for each of `tiles`.
pub fn pick(
    gpu: &Gpu,
    kind: impl Hash,
    rule: Tile,
    tiles: &[Tile],
    run: impl Fn(Tile) -> Result<()>,
) -> Result<Tile> {
    let tuned = &gpu.tuned;
    let patience = match tuned.when {
        When::Never => return Ok(rule),
        When::Third => PATIENCE,
        When::First => 1,
    };
    let key = key(&kind);
    {
        let mut known = tuned.known.lock();
        match known.entry(key).or_insert(Known::Seen(0)) {
            Known::Chosen(tile) if tiles.contains(tile) => return Ok(*tile),
            Known::Chosen(_) => return Ok(rule),
            // What someone watches or keeps is what was asked for alone.
            _ if clock::watched() || gpu.is_taping() || gpu.is_outside() => return Ok(rule),
            Known::Seen(n) => {
                *n += 1;
                if *n < patience {
                    return Ok(rule);
                }
            }
        }
    }
    let tile = fastest(gpu, rule, tiles, run)?;
    tuned.known.lock().insert(key, Known::Chosen(tile));
    Ok(tile)
}

fn fastest(
    gpu: &Gpu,
    rule: Tile,
    tiles: &[Tile],
    run: impl Fn(Tile) -> Result<()>,
) -> Result<Tile> {
    struct Watch;
    impl Drop for Watch {
        fn drop(&mut self) {
            clock::unwatch();
        }
    }
    clock::watch();
    let _watch = Watch;
    let time = |tile: Tile| -> Result<f64> {
        gpu.works()?;
        gpu.forget_works();
        for _ in 0..TIMES {
            run(tile)?;
        }
        let works = gpu.works()?;
        gpu.forget_works();
        let of = works.iter().filter(|w| !w.kernel.is_empty());
        Ok(of.map(|w| w.end - w.begin).fold(f64::INFINITY, f64::min))
    };
    let mut best = (time(rule)? * MARGIN, rule);
    for &tile in tiles.iter().filter(|t| **t != rule) {
        // One that the adapter does not take is none of them.
        let taken = time(tile).unwrap_or(f64::INFINITY);
        if taken < best.0 {
            best = (taken, tile);
        }
    }
    Ok(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::gpu;
    use std::cell::Cell;

    #[test]
    fn a_file_with_damage_gives_what_is_whole() {
        let path = std::env::temp_dir().join(format!("tiles-{}", std::process::id()));
        let text = "00000000000000ff 0000000000000001 64 64\nx\n1 2 64\n1 2 5 5\n1 2 32 32 \n";
        std::fs::write(&path, text).unwrap();
        let found = read(&path);
        std::fs::remove_file(&path).unwrap();
        let tile = |m| Known::Chosen(TILES.into_iter().find(|t| (t.m, t.n) == (m, m)).unwrap());
        let all = [([255, 1], tile(64)), ([1, 2], tile(32))];
        assert_eq!(found, all.into_iter().collect());
        assert_eq!(read(&path), Map::default());
    }

    #[test]
    fn every_tile_is_timed_and_an_error_is_no_winner() {
        let Some((_turn, gpu)) = gpu() else { return };
        let runs = Cell::new(0);
        let tile = fastest(gpu, TILES[2], &TILES, |tile| {
            runs.set(runs.get() + 1);
            match tile == TILES[2] {
                true => Ok(()),
                false => bail!(Runtime, "not here"),
            }
        });
        assert_eq!(tile.unwrap(), TILES[2]);
        assert_eq!(runs.get(), TIMES + TILES.len() - 1);
    }
}
