//! Memory that is a map of a file, or of memory that processes share.

use crate::os::{self, Backing};
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// A map of the beginning of what is behind it, which lives as long. There is nothing behind a map of no bytes.
pub struct FileMap {
    backing: Option<Backing>,
    ptr: NonNull<u8>,
    bytes: usize,
    shared: bool,
}

// SAFETY: the map belongs to this value alone; what is in it is read and written by raw pointers,
// whose races are the user's.
unsafe impl Send for FileMap {}
// SAFETY: a reference gives only the address; what is at it may race by the user alone.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Maps the first `bytes` of a file, for reading and writing. Where it is `shared`, who else
    /// maps the file sees what is written; otherwise nobody does, nor does the file.
    pub fn new(file: &File, bytes: usize, shared: bool) -> io::Result<FileMap> {
        if file.metadata()?.len() < bytes as u64 {
            let text = format!("the file is shorter than {bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if bytes == 0 {
            return Ok(FileMap {
                backing: None,
                ptr: NonNull::dangling(),
                bytes,
                shared,
            });
        }
        FileMap::of(Backing::of_file(file, shared)?, bytes, shared)
    }

    /// Maps the first `bytes`, which are not none, of what is there.
    pub fn of(backing: Backing, bytes: usize, shared: bool) -> io::Result<FileMap> {
        let ptr = backing.map(bytes, shared)?;
        Ok(FileMap {
            backing: Some(backing),
            ptr,
            bytes,
            shared,
        })
    }

    pub fn backing(&self) -> Option<&Backing> {
        self.backing.as_ref()
    }

    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_shared(&self) -> bool {
        self.shared
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        if self.bytes > 0 {
            os::unmap_file(self.ptr, self.bytes);
        }
    }
}
