//! Epoll instances over the sockets of our stack.

use super::{Virtual, fd};
use crate::backend::{Done, Handle, Output};
use fleetfoot_core::socket::{Errno, Events};

/// A socket of an epoll instance.
pub(super) struct Watched {
    socket: Handle,
    events: u32,
    /// Events that an edge-triggered entry has reported already.
    reported: u32,
}

/// First handle of an epoll instance, above those of sockets.
pub(super) const FIRST: i32 = 1 << 20;
const EPOLLET: u32 = 1 << 31;

impl Virtual {
    fn standing(&mut self, watched: (Handle, u32)) -> u32 {
        let asked = Events((watched.1 & 0xffff) as u16);
        let standing = self.stack.poll(self.now, fd(watched.0), asked);
        standing.map_or(0, |events| u32::from(events.0))
    }

    pub(super) fn epoll_control(
        &mut self,
        epoll: Handle,
        operation: i32,
        socket: Handle,
        events: u32,
    ) -> Done {
        let Some(watched) = self.polls.get_mut(&epoll.0) else {
            return self.failed(Errno::EBADF.number());
        };
        let at = watched.iter().position(|entry| entry.socket == socket);
        let fresh = Watched {
            socket,
            events,
            reported: 0,
        };
        match (operation, at) {
            (1, None) => watched.push(fresh),
            (2, Some(at)) => {
                watched.remove(at);
            }
            (3, Some(at)) => watched[at] = fresh,
            _ => return self.failed(Errno::EINVAL.number()),
        }
        self.done(0, Output::None)
    }

    pub(super) fn epoll_wait(&mut self, epoll: Handle, most: i32, timeout_ms: i32) -> Option<Done> {
        let Some(entries) = self.polls.get(&epoll.0) else {
            return Some(self.failed(Errno::EBADF.number()));
        };
        let asked: Vec<_> = entries.iter().map(|entry| (entry.socket, entry.events)).collect();
        let standing: Vec<u32> = asked.into_iter().map(|entry| self.standing(entry)).collect();
        let mut ready = Vec::new();
        for (entry, standing) in self.polls.get_mut(&epoll.0).into_iter().flatten().zip(standing) {
            entry.reported &= standing;
            let fresh = standing & !entry.reported;
            let events_now = if entry.events & EPOLLET != 0 {
                fresh
            } else {
                standing
            };
            if events_now != 0 && ready.len() < most.max(0) as usize {
                entry.reported = standing;
                ready.push((entry.socket, standing));
            }
        }
        if ready.is_empty() && timeout_ms != 0 {
            return None;
        }
        Some(self.done(ready.len() as i64, Output::Ready(ready)))
    }
}
