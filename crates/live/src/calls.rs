//! The kernel's socket calls by number: what a script names, nothing hidden. A failed call gives its errno.
//!
//! Descriptors are plain numbers because scripts close them, use them after closing, and share them between threads. Buffers
//! are slices, so no call can touch memory it was not given.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// A socket's descriptor.
pub type Fd = i32;

fn check(result: i64) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)))
}

/// socket(2), close-on-exec added.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> Result<Fd, Errno> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) }.into()).map(|fd| fd as Fd)
}

/// bind(2).
pub fn bind(fd: Fd, address: SocketAddr) -> Result<usize, Errno> {
    let address = Raw::new(address);
    // SAFETY: the pointer is to a live sockaddr of the length given.
    check(unsafe { libc::bind(fd, address.pointer(), address.length) }.into())
}

/// connect(2).
pub fn connect(fd: Fd, address: SocketAddr) -> Result<usize, Errno> {
    let address = Raw::new(address);
    // SAFETY: the pointer is to a live sockaddr of the length given.
    check(unsafe { libc::connect(fd, address.pointer(), address.length) }.into())
}

/// connect(2) with `AF_UNSPEC`: back to the unconnected state.
pub fn disconnect(fd: Fd) -> Result<usize, Errno> {
    let address = libc::sockaddr {
        sa_family: libc::AF_UNSPEC as libc::sa_family_t,
        sa_data: [0; 14],
    };
    let length = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the pointer is to a live sockaddr of the length given.
    check(unsafe { libc::connect(fd, &raw const address, length) }.into())
}

/// listen(2).
pub fn listen(fd: Fd, backlog: i32) -> Result<usize, Errno> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::listen(fd, backlog) }.into())
}

/// accept4(2), close-on-exec added; the peer's address is not asked for.
pub fn accept(fd: Fd, flags: i32) -> Result<Fd, Errno> {
    // SAFETY: null pointers say that the address is not wanted.
    check(
        unsafe {
            libc::accept4(
                fd,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                flags | libc::SOCK_CLOEXEC,
            )
        }
        .into(),
    )
    .map(|fd| fd as Fd)
}

/// close(2).
pub fn close(fd: Fd) -> Result<usize, Errno> {
    // SAFETY: takes a number only; descriptors here are never owned by a Rust type.
    check(unsafe { libc::close(fd) }.into())
}

/// shutdown(2).
pub fn shutdown(fd: Fd, how: i32) -> Result<usize, Errno> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::shutdown(fd, how) }.into())
}

/// read(2).
pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are of one live slice.
    check(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } as i64)
}

/// recv(2).
pub fn recv(fd: Fd, buffer: &mut [u8], flags: i32) -> Result<usize, Errno> {
    // SAFETY: pointer and length are of one live slice.
    check(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) } as i64)
}

/// What recvmsg(2) returned.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Bytes read.
    pub bytes: usize,
    /// `msg_flags`.
    pub flags: i32,
    /// Control messages: level, type, data.
    pub control: Vec<(i32, i32, Vec<u8>)>,
}

/// recvmsg(2) with one buffer.
pub fn recvmsg(fd: Fd, buffer: &mut [u8], flags: i32) -> Result<Received, Errno> {
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut control = [0u64; 64]; // aligned as cmsghdr wants
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _; // other C libraries have other types here
    // SAFETY: every pointer in the header is to a live local of the length stated.
    let bytes = check(unsafe { libc::recvmsg(fd, &raw mut message, flags) } as i64)?;
    let mut received = Received {
        bytes,
        flags: message.msg_flags,
        control: Vec::new(),
    };
    // SAFETY: the kernel filled the control buffer and its length; the macros walk inside it.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(here) = header.as_ref() {
            let length = here.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as _);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(header), length as _);
            received
                .control
                .push((here.cmsg_level, here.cmsg_type, data.to_vec()));
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(received)
}

/// write(2).
pub fn write(fd: Fd, data: &[u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are of one live slice.
    check(unsafe { libc::write(fd, data.as_ptr().cast(), data.len()) } as i64)
}

/// send(2), or sendto(2) with an address. `MSG_NOSIGNAL` is added: a broken pipe is an errno, not a signal.
pub fn send(fd: Fd, data: &[u8], flags: i32, to: Option<SocketAddr>) -> Result<usize, Errno> {
    let address = to.map(Raw::new);
    let (pointer, length) = address.as_ref().map_or((std::ptr::null(), 0), |address| {
        (address.pointer(), address.length)
    });
    // SAFETY: both pointers are to live values of the lengths stated, or null with length zero.
    check(unsafe {
        libc::sendto(
            fd,
            data.as_ptr().cast(),
            data.len(),
            flags | libc::MSG_NOSIGNAL,
            pointer,
            length,
        )
    } as i64)
}

/// sendmsg(2) or writev(2) of several buffers, optionally with an address.
pub fn sendmsg(fd: Fd, parts: &[&[u8]], flags: i32, to: Option<SocketAddr>) -> Result<usize, Errno> {
    send_parts(fd, parts, flags, to.map(Raw::new).as_ref())
}

/// sendmsg(2) with an address of family `AF_UNSPEC`.
pub fn sendmsg_unspecified(fd: Fd, parts: &[&[u8]], flags: i32) -> Result<usize, Errno> {
    send_parts(fd, parts, flags, Some(&Raw::unspecified()))
}

fn send_parts(fd: Fd, parts: &[&[u8]], flags: i32, address: Option<&Raw>) -> Result<usize, Errno> {
    let mut vectors: Vec<libc::iovec> = parts
        .iter()
        .map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        })
        .collect();
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = vectors.len() as _;
    if let Some(address) = address {
        message.msg_name = address.pointer().cast_mut().cast();
        message.msg_namelen = address.length;
    }
    // SAFETY: every pointer is to a live value of the length stated; the kernel only reads through them.
    check(unsafe { libc::sendmsg(fd, &raw const message, flags | libc::MSG_NOSIGNAL) } as i64)
}

/// fcntl(2) with a number.
pub fn fcntl(fd: Fd, command: i32, argument: i32) -> Result<usize, Errno> {
    // SAFETY: takes numbers only; callers use F_GETFL and F_SETFL.
    check(unsafe { libc::fcntl(fd, command, argument) }.into())
}

/// ioctl(2) that fills one integer (SIOCINQ, SIOCOUTQ, FIONREAD, SIOCATMARK).
pub fn ioctl(fd: Fd, request: u64) -> Result<i32, Errno> {
    let mut value: c_int = 0;
    // SAFETY: the requests named above write one int.
    check(unsafe { libc::ioctl(fd, request as _, &raw mut value) }.into())?;
    Ok(value)
}

/// poll(2): descriptor, wanted events and, filled in, those that hold.
pub fn poll(entries: &mut [(Fd, i16, i16)], timeout_ms: i32) -> Result<usize, Errno> {
    let mut raw: Vec<libc::pollfd> = entries
        .iter()
        .map(|&(fd, events, _)| libc::pollfd {
            fd,
            events,
            revents: 0,
        })
        .collect();
    // SAFETY: pointer and count are of one live vector.
    let ready = check(unsafe { libc::poll(raw.as_mut_ptr(), raw.len() as libc::nfds_t, timeout_ms) }.into())?;
    for (entry, raw) in entries.iter_mut().zip(raw) {
        entry.2 = raw.revents;
    }
    Ok(ready)
}

/// epoll_create1(2).
pub fn epoll_create() -> Result<Fd, Errno> {
    // SAFETY: takes a number only.
    check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }.into()).map(|fd| fd as Fd)
}

/// epoll_ctl(2); `data` comes back from [`epoll_wait`].
pub fn epoll_ctl(epoll: Fd, operation: i32, fd: Fd, events: u32, data: u64) -> Result<usize, Errno> {
    let mut event = libc::epoll_event { events, u64: data };
    // SAFETY: the pointer is to a live event.
    check(unsafe { libc::epoll_ctl(epoll, operation, fd, &raw mut event) }.into())
}

/// epoll_wait(2): events and data of each that holds.
pub fn epoll_wait(epoll: Fd, most: usize, timeout_ms: i32) -> Result<Vec<(u32, u64)>, Errno> {
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most];
    let room = c_int::try_from(most).unwrap_or(c_int::MAX);
    // SAFETY: pointer and count are of one live vector.
    let ready = check(unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), room, timeout_ms) }.into())?;
    Ok(events[..ready]
        .iter()
        .map(|event| (event.events, event.u64))
        .collect())
}

/// setsockopt(2) with the value's bytes.
pub fn setsockopt(fd: Fd, level: i32, name: i32, value: &[u8]) -> Result<usize, Errno> {
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: pointer and length are of one live slice.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast::<c_void>(), length) }.into())
}

/// getsockopt(2): the value's bytes, at most `most`.
pub fn getsockopt(fd: Fd, level: i32, name: i32, most: usize) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0u8; most];
    let mut length = libc::socklen_t::try_from(most).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: the buffer is live and `length` states its size.
    check(unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) }.into())?;
    value.truncate(length as usize);
    Ok(value)
}

/// The sockaddr of an address, as the kernel reads it.
struct Raw {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Raw {
    fn new(address: SocketAddr) -> Raw {
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let length = match address.ip() {
            IpAddr::V4(ip) => fill_v4(&mut storage, ip, address.port()),
            IpAddr::V6(ip) => fill_v6(&mut storage, ip, address.port()),
        };
        Raw {
            storage,
            length: length as libc::socklen_t,
        }
    }

    /// Family `AF_UNSPEC`, which is zero.
    fn unspecified() -> Raw {
        Raw {
            // SAFETY: all-zero is a valid sockaddr_storage.
            storage: unsafe { std::mem::zeroed() },
            length: size_of::<libc::sockaddr_in>() as libc::socklen_t,
        }
    }

    fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
}

fn fill_v4(storage: &mut libc::sockaddr_storage, ip: Ipv4Addr, port: u16) -> usize {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(ip).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: sockaddr_storage is larger than and aligned for every sockaddr.
    unsafe { (&raw mut *storage).cast::<libc::sockaddr_in>().write(address) };
    size_of::<libc::sockaddr_in>()
}

fn fill_v6(storage: &mut libc::sockaddr_storage, ip: Ipv6Addr, port: u16) -> usize {
    let address = libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: port.to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
        sin6_scope_id: 0,
    };
    // SAFETY: as above.
    unsafe { (&raw mut *storage).cast::<libc::sockaddr_in6>().write(address) };
    size_of::<libc::sockaddr_in6>()
}
