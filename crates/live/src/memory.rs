//! Memory that the allocator keeps.

/// Gives memory that nothing uses any more back to the kernel. The allocator of glibc keeps what was freed below something that is still
/// used, on each thread's heap: after a hundred thousand results that may be gigabytes. Others give it back themselves, or have no such call.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it has no precondition, and touches free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}
