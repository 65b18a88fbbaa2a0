//! Sockets of the kernel for the loop that plays the traffic.

use super::controller;
use super::place::Place;
use super::play::LISTENER;
use crate::{Error, calls};
use fleetfoot_sim::spec::{Spec, World};
use std::io;
use std::net::SocketAddr;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Where the listener of a group is.
pub(super) const fn port(group: usize) -> u16 {
    10_000 + group as u16
}

/// A listener of the kernel for a group, at a side.
pub(super) fn listen(
    spec: &Spec,
    place: &Place,
    epoll: &OwnedFd,
    group: usize,
    side: usize,
) -> Result<TcpListener, Error> {
    place.enter(side)?;
    let fail = |cause| Error::new("cannot listen", cause);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port(group))).map_err(fail)?;
    set_options(spec, listener.as_raw_fd(), group)?;
    listener.set_nonblocking(true).map_err(fail)?;
    // As many as there may be: a full backlog is no part of what is compared.
    calls::listen(listener.as_raw_fd(), 65_535).map_err(|errno| failed("cannot listen", errno.0))?;
    watch(
        epoll,
        listener.as_raw_fd(),
        LISTENER | group as u64,
        libc::EPOLLIN,
    )?;
    Ok(listener)
}

/// A socket of a group that connects from this thread's namespace, and its address: `own` where it is to be a certain one.
pub(super) fn connect(
    spec: &Spec,
    group: usize,
    own: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<(TcpStream, SocketAddr), Error> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    let fd =
        calls::socket(libc::AF_INET, kind, 0).map_err(|errno| failed("cannot open a socket", errno.0))?;
    // SAFETY: the kernel has just given this descriptor to nobody else.
    let socket = unsafe { TcpStream::from_raw_fd(fd) };
    set_options(spec, fd, group)?;
    if let Some(own) = own {
        // The port is chosen when the destination is known: connections to others may have the same.
        let late = 1_i32.to_ne_bytes();
        calls::setsockopt(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &late)
            .and_then(|_| calls::bind(fd, own))
            .map_err(|errno| failed("cannot bind a socket", errno.0))?;
    }
    match calls::connect(fd, to) {
        Ok(_) => {}
        Err(errno) if errno.0 == libc::EINPROGRESS => {}
        Err(errno) => return Err(failed("cannot connect", errno.0)),
    }
    let own = socket
        .local_addr()
        .map_err(|cause| Error::new("cannot connect", cause))?;
    Ok((socket, own))
}

/// The congestion control of a group and whether Nagle's algorithm holds its small segments, for a socket of the kernel; one that
/// listens passes both on to what it accepts. Where our host sends, the kernel may not have that controller.
fn set_options(spec: &Spec, fd: i32, group: usize) -> Result<(), Error> {
    let config = &spec.groups[group].sender;
    if spec.world == World::HostSends {
        return Ok(());
    }
    let name = controller(config).unwrap_or(config.congestion_control);
    calls::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes()).map_err(|errno| {
        let attach = match name.strip_prefix("ff_") {
            Some(ours) => format!("; `fleetfoot attach {ours}` makes it known"),
            None => String::new(),
        };
        failed(
            &format!("the kernel has no congestion control {name}{attach}"),
            errno.0,
        )
    })?;
    let at_once = i32::from(!config.nagle).to_ne_bytes();
    calls::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &at_once)
        .map_err(|errno| failed("cannot choose Nagle's algorithm", errno.0))?;
    Ok(())
}

pub(super) fn watch(epoll: &OwnedFd, fd: i32, data: u64, events: i32) -> Result<(), Error> {
    calls::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, events as u32, data)
        .map(|_| ())
        .map_err(|errno| failed("cannot watch a socket", errno.0))
}

pub(super) fn failed(what: &str, errno: i32) -> Error {
    Error::new(what, io::Error::from_raw_os_error(errno))
}
