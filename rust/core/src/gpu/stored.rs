//! What a driver made of our shaders, kept in a file between runs where it hands that out.

use super::adapter::Info;
use super::key::key;
use std::path::{Path, PathBuf};

/// The driver's cache of pipelines, and its file.
pub(super) struct Stored {
    pub cache: wgpu::PipelineCache,
    path: PathBuf,
}

/// The folder of what may be lost: `PYTENSORLIB_CACHE_DIR` (nothing is kept where that is empty),
/// or one named after us where the system wants such things.
pub fn folder() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("PYTENSORLIB_CACHE_DIR") {
        return (!dir.is_empty()).then(|| dir.into());
    }
    let at = |name: &str, below: &str| {
        let root = std::env::var_os(name).filter(|v| !v.is_empty())?;
        Some(Path::new(&root).join(below))
    };
    let dir = match cfg!(windows) {
        true => at("LOCALAPPDATA", ""),
        false => at("XDG_CACHE_HOME", "").or_else(|| at("HOME", ".cache")),
    };
    dir.map(|dir| dir.join("pytensorlib"))
}

/// A name for files about this adapter under this driver.
pub fn name(info: &Info) -> String {
    let [a, b] = key(&(&info.name, &info.driver, &info.backend));
    format!("wgpu-{a:016x}{b:016x}")
}

impl Stored {
    /// Where the adapter takes part: with what the last run left.
    pub fn open(device: &wgpu::Device, info: &Info) -> Option<Stored> {
        if !info.features.contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = folder()?.join(name(info) + ".pipelines");
        let data = std::fs::read(&path).ok();
        // SAFETY: the data is what `save` wrote; wgpu compares its head, which names the adapter
        // and the driver, and begins anew with a file that is not of this kind.
        let cache = unsafe {
            device.create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                label: None,
                data: data.as_deref(),
                fallback: true,
            })
        };
        Some(Stored { cache, path })
    }

    /// Writes the file anew where there is more than it holds. Nothing is lost but time where that
    /// does not succeed.
    pub fn save(&self) -> std::io::Result<()> {
        let Some(data) = self.cache.get_data() else {
            return Ok(());
        };
        if std::fs::metadata(&self.path).is_ok_and(|m| m.len() == data.len() as u64) {
            return Ok(());
        }
        replace(&self.path, &data)
    }
}

/// Writes a file anew, and the folder where there is none: a reader sees the old one or the new one.
pub(super) fn replace(path: &Path, data: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut new = path.as_os_str().to_os_string();
    new.push(format!(".{}", std::process::id()));
    std::fs::write(&new, data)?;
    std::fs::rename(new, path)
}
