//! Threads with network namespaces of their own, which are joined before they go on.

use crate::Error;
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A thread with a network namespace of its own, as the thread that joins the namespaces knows it (`desk`), and as it knows
/// itself (`seat`).
pub(crate) struct Member<T> {
    pub(crate) desk: Desk<T>,
    pub(crate) seat: Seat<T>,
}

/// What the joining thread holds of a member.
pub(crate) struct Desk<T> {
    place: Receiver<Result<Place, Error>>,
    go_on: Sender<T>,
}

/// What a member holds of itself.
pub(crate) struct Seat<T> {
    place: Sender<Result<Place, Error>>,
    go_on: Receiver<T>,
}

/// Where a network namespace is: a thread that is in it, and a descriptor that stands for it.
pub(crate) struct Place {
    pub(crate) thread: i32,
    pub(crate) namespace: File,
}

impl<T> Member<T> {
    pub(crate) fn start() -> Member<T> {
        let (place, placed) = channel();
        let (go_on, gone_on) = channel();
        Member {
            desk: Desk { place: placed, go_on },
            seat: Seat {
                place,
                go_on: gone_on,
            },
        }
    }
}

impl<T> Seat<T> {
    /// Makes the namespace and reports where it is.
    pub(crate) fn take(&self) -> Result<(), Error> {
        let made = unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|errno| Error::new("cannot make a network namespace", errno))
            .and_then(|()| {
                File::open("/proc/thread-self/ns/net")
                    .map_err(|cause| Error::new("cannot open a network namespace", cause))
            });
        let (report, result) = match made {
            Ok(namespace) => {
                let thread = crate::thread_id();
                (Ok(Place { thread, namespace }), Ok(()))
            }
            Err(error) => {
                let again = Error::new(error.what.clone(), error.cause.kind());
                (Err(again), Err(error))
            }
        };
        let _ = self.place.send(report);
        result
    }

    /// Goes on with `work` when the namespaces are joined.
    pub(crate) fn work<R>(&self, work: impl FnOnce(T) -> Result<R, Error>) -> Result<R, Error> {
        work(self.go_on.recv().map_err(|_| Error::abandoned())?)
    }
}

impl<T> Desk<T> {
    pub(crate) fn place(&self) -> Result<Place, Error> {
        self.place.recv().map_err(|_| Error::abandoned())?
    }

    pub(crate) fn go_on(&self, word: T) -> Result<(), Error> {
        self.go_on.send(word).map_err(|_| Error::abandoned())
    }
}
