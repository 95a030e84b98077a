//! Memory that is a map of a file.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// A map of a file's beginning. While it lives, so does the file, also when it has no name.
pub struct FileMap {
    file: File,
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
    #[cfg(unix)]
    pub fn new(file: File, bytes: usize, shared: bool) -> io::Result<FileMap> {
        use std::os::fd::AsRawFd;

        if file.metadata()?.len() < bytes as u64 {
            let text = format!("the file is shorter than {bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut ptr = NonNull::dangling();
        if bytes > 0 {
            let flags = match shared {
                true => libc::MAP_SHARED,
                false => libc::MAP_PRIVATE,
            };
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new map at an address that the system chooses.
            let at = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    access,
                    flags,
                    file.as_raw_fd(),
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            ptr = NonNull::new(at.cast()).expect("a map is not at address 0");
        }
        Ok(FileMap {
            file,
            ptr,
            bytes,
            shared,
        })
    }

    #[cfg(not(unix))]
    pub fn new(_: File, _: usize, _: bool) -> io::Result<FileMap> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "files are mapped on Unix only",
        ))
    }

    pub fn file(&self) -> &File {
        &self.file
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
        #[cfg(unix)]
        if self.bytes > 0 {
            // SAFETY: mapped by `new` with this size, and nobody holds it any more.
            unsafe { libc::munmap(self.ptr.as_ptr().cast(), self.bytes) };
        }
    }
}
