//! One system call with everything it needs.

use super::Linux;
use crate::backend::{BackendError, Call, Destination, Done, Handle, OptionValue, Output};
use fleetfoot_live::Clock;
use fleetfoot_live::calls::{self, Errno, Fd};
use std::net::SocketAddr;

/// A call with everything it needs, ready for any thread.
pub(super) struct Operation {
    call: Call,
    domain: i32,
    address: Option<SocketAddr>,
    congestion_control: Option<String>,
    quick_acks: bool,
}

impl Operation {
    pub(super) fn new(linux: &Linux<'_>, call: &Call) -> Result<Operation, BackendError> {
        let address = match call {
            Call::Bind { address, .. } => Some(*address),
            Call::Connect {
                address: Destination::Address(address),
                ..
            } => Some(*address),
            Call::Write {
                to: Some(Destination::Address(address)),
                ..
            } => Some(*address),
            _ => None,
        };
        Ok(Operation {
            call: call.clone(),
            domain: linux.domain(),
            congestion_control: linux.congestion_control.clone(),
            quick_acks: linux.quick_acks,
            address: address.map(|address| linux.address(address)),
        })
    }

    pub(super) fn run(&self, clock: &Clock) -> Done {
        let (result, output) = match self.perform() {
            Ok((result, output)) => (Ok(result), output),
            Err(errno) => (Err(errno), Output::None),
        };
        Done {
            at: clock.now(),
            result: result.map_or(-1, |value| value as i64),
            errno: result.err().map_or(0, |Errno(errno)| errno),
            output,
        }
    }

    fn perform(&self) -> Result<(usize, Output), Errno> {
        let plain = |result: Result<usize, Errno>| result.map(|value| (value, Output::None));
        let made = |result: Result<Fd, Errno>| result.map(|fd| (fd as usize, Output::None));
        match &self.call {
            Call::Socket { kind, protocol } => {
                let fd = calls::socket(self.domain, *kind, *protocol)?;
                if let Some(name) = &self.congestion_control {
                    // Sockets that are not TCP's refuse it.
                    let _ = calls::setsockopt(fd, libc::SOL_TCP, libc::TCP_CONGESTION, name.as_bytes());
                }
                made(Ok(fd))
            }
            Call::Bind { socket, address } => plain(calls::bind(socket.0, self.address.unwrap_or(*address))),
            Call::Listen { socket, backlog } => plain(calls::listen(socket.0, *backlog)),
            Call::Accept { socket, flags } => {
                let fd = calls::accept(socket.0, *flags)?;
                if !self.quick_acks {
                    calls::setsockopt(fd, libc::SOL_TCP, libc::TCP_QUICKACK, &0_i32.to_ne_bytes())?;
                }
                made(Ok(fd))
            }
            Call::Connect { socket, .. } => match self.address {
                Some(address) => plain(calls::connect(socket.0, address)),
                None => plain(calls::disconnect(socket.0)),
            },
            Call::Read {
                socket,
                buffers,
                flags,
            } => {
                let mut buffer = vec![0xff; buffers.iter().sum()];
                if flags & libc::MSG_ERRQUEUE != 0 {
                    let received = calls::recvmsg(socket.0, &mut buffer, *flags)?;
                    let error = received.control.iter().find_map(decode_error);
                    return Ok((received.bytes, error.unwrap_or_default()));
                }
                let length = if *flags == 0 {
                    calls::read(socket.0, &mut buffer)
                } else {
                    calls::recv(socket.0, &mut buffer, *flags)
                }?;
                let zeros = buffer.iter().take(length).all(|&byte| byte == 0);
                Ok((length, Output::Data { zeros }))
            }
            Call::Write {
                socket,
                buffers,
                flags,
                to,
            } => {
                let to_nowhere = *to == Some(Destination::Unspecified);
                let zeros: Vec<Vec<u8>> = buffers.iter().map(|&length| vec![0; length]).collect();
                let parts: Vec<&[u8]> = zeros.iter().map(Vec::as_slice).collect();
                match parts.as_slice() {
                    [one] if to.is_none() => plain(calls::send(socket.0, one, *flags, None)),
                    parts if to_nowhere => plain(calls::sendmsg_unspecified(socket.0, parts, *flags)),
                    parts => plain(calls::sendmsg(socket.0, parts, *flags, self.address)),
                }
            }
            Call::Shutdown { socket, how } => plain(calls::shutdown(socket.0, *how)),
            Call::Close { socket } => plain(calls::close(socket.0)),
            Call::Poll { entries, timeout_ms } => {
                let mut entries: Vec<(Fd, i16, i16)> = entries
                    .iter()
                    .map(|&(socket, events)| (socket.0, events, 0))
                    .collect();
                let ready = calls::poll(&mut entries, *timeout_ms)?;
                Ok((
                    ready,
                    Output::Events(entries.iter().map(|entry| entry.2).collect()),
                ))
            }
            Call::Ioctl { socket, request } => calls::ioctl(socket.0, u64::from(*request))
                .map(|value| (0, Output::Option(OptionValue::Integer(value)))),
            Call::Fcntl {
                socket,
                command,
                argument,
            } => plain(calls::fcntl(socket.0, *command, *argument)),
            Call::GetOption { socket, level, name } => {
                let value = calls::getsockopt(socket.0, *level, *name, 64)?;
                let integer = |at: usize| {
                    value.get(at..at + 4).map_or(0, |bytes| {
                        i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
                    })
                };
                Ok((
                    0,
                    Output::Option(if (*level, *name) == (libc::SOL_SOCKET, libc::SO_LINGER) {
                        OptionValue::Linger {
                            on: integer(0),
                            seconds: integer(4),
                        }
                    } else if value.len() == 4 {
                        OptionValue::Integer(integer(0))
                    } else {
                        let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                        OptionValue::Text(String::from_utf8_lossy(&value[..end]).into_owned())
                    }),
                ))
            }
            Call::SetOption {
                socket,
                level,
                name,
                value,
            } => {
                let bytes = match value {
                    OptionValue::Integer(value) => value.to_ne_bytes().to_vec(),
                    OptionValue::Linger { on, seconds } => [on.to_ne_bytes(), seconds.to_ne_bytes()].concat(),
                    OptionValue::Text(text) => text.clone().into_bytes(),
                };
                plain(calls::setsockopt(socket.0, *level, *name, &bytes))
            }
            Call::EpollCreate => made(calls::epoll_create()),
            Call::EpollControl {
                epoll,
                operation,
                socket,
                events,
            } => plain(calls::epoll_ctl(
                epoll.0,
                *operation,
                socket.0,
                *events,
                socket.0 as u64,
            )),
            Call::EpollWait {
                epoll,
                most,
                timeout_ms,
            } => {
                let most = usize::try_from(*most).map_err(|_| Errno(libc::EINVAL))?;
                let ready = calls::epoll_wait(epoll.0, most.min(1024), *timeout_ms)?;
                Ok((
                    ready.len(),
                    Output::Ready(
                        ready
                            .iter()
                            .map(|&(events, data)| (Handle(data as i32), events))
                            .collect(),
                    ),
                ))
            }
        }
    }
}

/// `struct sock_extended_err` (linux/errqueue.h) of a control message.
fn decode_error((level, kind, data): &(i32, i32, Vec<u8>)) -> Option<Output> {
    let ours = [
        (libc::SOL_IP, libc::IP_RECVERR),
        (libc::SOL_IPV6, libc::IPV6_RECVERR),
    ];
    if !ours.contains(&(*level, *kind)) {
        return None;
    }
    let long = |at: usize| {
        let bytes = data.get(at..at + 4)?;
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    Some(Output::QueuedError {
        errno: long(0)? as i32,
        origin: *data.get(4)?,
        kind: *data.get(5)?,
        code: *data.get(6)?,
        info: long(8)?,
        data: long(12)?,
    })
}
