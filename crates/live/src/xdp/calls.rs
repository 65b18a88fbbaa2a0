//! System calls of AF_XDP sockets.

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
