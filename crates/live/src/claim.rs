//! An interface belongs to one forwarding process: with two of them on it every frame would pass twice.
//!
//! The sign is a netlink socket with a number of its own, made of the interface's. The kernel gives such a number once in a network
//! namespace, and takes it back when the socket closes, however the process ends; nothing is written anywhere.
//!
//! **Source.** netlink(7), `nl_pid`.
//! **Deviations.** None known.

use crate::Error;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::time::{Duration, Instant};

/// An interface that belongs to this process while this lives.
pub(crate) struct Claim {
    _socket: Socket,
}

impl Claim {
    /// Takes the interface `name`, which has the number `index`, of this thread's network namespace.
    ///
    /// # Errors
    /// Another process has it.
    pub(crate) fn take(name: &str, index: u32) -> Result<Claim, Error> {
        let fail = |cause: io::Error| Error::new(format!("cannot take {name} for this process"), cause);
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(fail)?;
        let until = Instant::now() + LONGEST_END;
        loop {
            match socket.bind(&SocketAddr::new(FIRST | index, 0)) {
                Ok(()) => return Ok(Claim { _socket: socket }),
                Err(cause) if cause.kind() != io::ErrorKind::AddrInUse => return Err(fail(cause)),
                Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(cause) => {
                    return Err(Error::new(
                        format!(
                            "another process forwards what comes by {name}, so every frame would leave twice"
                        ),
                        io::Error::new(
                            cause.kind(),
                            "stop that `fleetfoot router` or `fleetfoot mark --between` first",
                        ),
                    ));
                }
            }
        }
    }
}

/// Numbers from here on are above those of processes, and of the other sign than those that the kernel chooses.
const FIRST: u32 = 0x4000_0000;
/// So long the kernel may need to put away what a process had that was killed just now.
const LONGEST_END: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);
