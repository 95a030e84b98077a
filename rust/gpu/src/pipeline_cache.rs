//! The on-disk pipeline cache, where the driver hands out compiled pipelines.

use super::adapter::Info;
use super::key::key;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The driver's cache of pipelines, and its file.
pub(super) struct PipelineCache {
    pub cache: wgpu::PipelineCache,
    path: PathBuf,
}

/// The folder of what may be lost: `PYTENSORLIB_CACHE_DIR` (nothing is kept where that is empty),
/// or one named after us where the system wants such things.
pub fn folder() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("PYTENSORLIB_CACHE_DIR") {
        return (!dir.is_empty()).then(|| dir.into());
    }
    let at = |(name, below): &(&str, &str)| {
        let root = std::env::var_os(name).filter(|v| !v.is_empty())?;
        Some(Path::new(&root).join(below).join("pytensorlib"))
    };
    crate::os::CACHES.iter().find_map(at)
}

/// A name for files about this adapter under this driver.
pub fn name(info: &Info) -> String {
    let [a, b] = key(&(&info.name, &info.driver, &info.backend));
    format!("wgpu-{a:016x}{b:016x}")
}

impl PipelineCache {
    /// Where the adapter takes part: with what the last run left.
    pub fn open(device: &wgpu::Device, info: &Info) -> Option<PipelineCache> {
        if !info.features.contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = folder()?.join(name(info) + ".pipelines");
        let file = fs::read(&path).ok().filter(|file| file.len() <= MOST);
        let data = file.as_deref().and_then(checked);
        // SAFETY: the data is what `save` wrote, by its checksum; wgpu compares its head, which names
        // the adapter and the driver, and begins anew with data that is not of this kind.
        let cache = unsafe {
            device.create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                label: None,
                data,
                fallback: true,
            })
        };
        Some(PipelineCache { cache, path })
    }

    /// Writes the file anew where there is more than it holds. Nothing is lost but time where that
    /// does not succeed.
    pub fn save(&self) -> std::io::Result<()> {
        let Some(data) = self.cache.get_data() else {
            return Ok(());
        };
        let sum = sum(&data);
        let same = |file: Vec<u8>| file.starts_with(&sum) && file.len() == SUM + data.len();
        if fs::read(&self.path).is_ok_and(same) {
            return Ok(());
        }
        replace(&self.path, &[&sum[..], &data].concat())
    }
}

/// Bytes of a file beyond which the next run begins anew: each run adds to it.
const MOST: usize = 128 << 20;
/// Bytes of the checksum, which come first in the file.
const SUM: usize = 8;

/// A mark of this kind of file, and the CRC-32 of what follows.
fn sum(data: &[u8]) -> [u8; SUM] {
    let mut sum = *b"pipe    ";
    sum[4..].copy_from_slice(&crc32fast::hash(data).to_le_bytes());
    sum
}

/// What follows the checksum, if it is that of it: not a file cut short, changed or of another kind.
fn checked(file: &[u8]) -> Option<&[u8]> {
    let (found, data) = file.split_at_checked(SUM)?;
    (found == sum(data)).then_some(data)
}

/// Writes a file anew, and the folder where there is none: a reader sees the old one or the new one.
pub(super) fn replace(path: &Path, data: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut new = path.as_os_str().to_os_string();
    new.push(format!(".{}", std::process::id()));
    let mut file = File::create(&new)?;
    file.write_all(data)?;
    file.sync_all()?;
    drop(file);
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_of_pipelines_is_not_given_to_the_driver() {
        let data: Vec<u8> = (0..200).collect();
        let file = [&sum(&data)[..], &data].concat();
        assert_eq!(checked(&file), Some(&data[..]));
        for i in 0..file.len() {
            let mut other = file.clone();
            other[i] ^= 16;
            assert_eq!(checked(&other), None, "a changed byte {i}");
            assert_eq!(checked(&file[..i]), None, "cut at {i}");
        }
        assert_eq!(checked(&data), None, "without a checksum");
    }
}
