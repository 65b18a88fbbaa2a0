//! System calls of AF_XDP sockets, and of programs and maps in the kernel.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub(super) fn owned(fd: i32) -> io::Result<OwnedFd> {
    check(fd)?;
    // SAFETY: the kernel has just given this descriptor to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn check(done: i32) -> io::Result<i32> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(done)
}

pub(super) fn set<T>(fd: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a live value of the length given.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            std::ptr::from_ref(value).cast(),
            length,
        )
    })
    .map(drop)
}

pub(super) fn read<T>(fd: &OwnedFd, option: i32, value: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointers are to live values, and the length is that of the first; any bytes are a value of these types.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    })
    .map(drop)
}

/// A new map of a kind, with keys and values of so many bytes.
pub(super) fn map(kind: u32, [key, value]: [u32; 2], entries: u32, flags: u32) -> io::Result<OwnedFd> {
    const MAP_CREATE: i32 = 0;
    owned(bpf(MAP_CREATE, &mut [kind, key, value, entries, flags]))
}

/// Sets an entry of a map; key and value have the lengths that the map was made for.
pub(super) fn update(map: &OwnedFd, key: &[u8], value: &[u8]) -> io::Result<()> {
    const MAP_UPDATE: i32 = 2;
    let [key, value] = [key, value].map(|bytes| halves(bytes.as_ptr() as u64));
    let map = map.as_raw_fd() as u32;
    let mut words = [map, 0, key[0], key[1], value[0], value[1], 0, 0];
    check(bpf(MAP_UPDATE, &mut words)).map(drop)
}

/// Takes an entry out of a map.
pub(super) fn remove(map: &OwnedFd, key: &[u8]) -> io::Result<()> {
    const MAP_DELETE: i32 = 3;
    let key = halves(key.as_ptr() as u64);
    check(bpf(MAP_DELETE, &mut [map.as_raw_fd() as u32, 0, key[0], key[1]])).map(drop)
}

/// A number as two words of a request.
pub(super) fn halves(number: u64) -> [u32; 2] {
    let bytes = number.to_ne_bytes();
    let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [half(0), half(4)]
}

/// A request of bpf(2), as the words of its `union bpf_attr`.
pub(super) fn bpf(command: i32, words: &mut [u32]) -> i32 {
    // SAFETY: the kernel reads as many bytes as it is told, and what they point to lives to the end of the call.
    unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            words.as_mut_ptr(),
            size_of_val(words) as u32,
        ) as i32
    }
}
