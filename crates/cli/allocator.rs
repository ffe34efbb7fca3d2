//! Settings of the memory allocator.

/// Bodies of at least this size go back to the system as soon as they are dropped.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED: std::ffi::c_int = 1 << 20;

/// Keeps large bodies out of the heap. By default glibc raises the size from which it maps memory to that of the largest block that was
/// freed. Then bodies of many megabytes are in the heap, are copied as they grow and leave holes, and the process takes several times what
/// `server.max_memory` says.
pub(crate) fn configure() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the only way to set it from within the process")]
    // SAFETY: The function takes two numbers, and no other thread runs yet. If it fails, the default stays.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
    }
}
