//! Names of targets: looked up by this machine's resolver in a few threads, so that nobody else waits.

use crate::Error;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How a name and a port become addresses.
pub type Lookup = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The resolver of this machine (`getaddrinfo(3)`).
pub fn system_lookup() -> Lookup {
    Arc::new(|name, port| Ok((name, port).to_socket_addrs()?.collect()))
}

/// A name to look up, and for whom.
struct Question {
    token: u64,
    name: String,
    port: u16,
}

/// What was found: nothing, or addresses in the order in which they are to be tried.
pub(super) struct Answer {
    pub(super) token: u64,
    pub(super) addresses: Vec<SocketAddr>,
}

/// Threads that look names up. They are started by the first name.
pub(super) struct Names {
    lookup: Lookup,
    questions: Option<SyncSender<Question>>,
    answering: Sender<Answer>,
    answers: Receiver<Answer>,
    /// Can be read when answers wait.
    bell: Arc<EventFd>,
}

impl Names {
    pub(super) fn new(lookup: Lookup) -> Result<Names, Error> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell =
            EventFd::from_flags(flags).map_err(|errno| Error::new("cannot make an event counter", errno))?;
        let (answering, answers) = channel();
        Ok(Names {
            lookup,
            questions: None,
            answering,
            answers,
            bell: Arc::new(bell),
        })
    }

    /// Asks for a name; false if too many wait already.
    pub(super) fn ask(&mut self, token: u64, name: String, port: u16) -> bool {
        if self.questions.is_none() {
            self.questions = self.start();
        }
        let question = Question { token, name, port };
        match self
            .questions
            .as_ref()
            .map(|questions| questions.try_send(question))
        {
            Some(Ok(())) => true,
            Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) | None => false,
        }
    }

    /// The next answer, if one is there.
    pub(super) fn next(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// Answers that come from now on make the descriptor readable again.
    pub(super) fn heard(&self) {
        let _ = self.bell.read(); // it may have been heard already
    }

    fn start(&self) -> Option<SyncSender<Question>> {
        let (asking, questions) = sync_channel(WAITING);
        let questions: Arc<Mutex<Receiver<Question>>> = Arc::new(Mutex::new(questions));
        let mut started = None;
        for _ in 0..THREADS {
            let questions = Arc::clone(&questions);
            let (lookup, answering) = (Arc::clone(&self.lookup), self.answering.clone());
            let bell = Arc::clone(&self.bell);
            let work = move || {
                loop {
                    let next = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Question { token, name, port }) = next else {
                        return; // the proxy is gone
                    };
                    let mut addresses = lookup(&name, port).unwrap_or_default();
                    addresses.truncate(ADDRESSES);
                    if answering.send(Answer { token, addresses }).is_err() {
                        return;
                    }
                    let _ = bell.write(1); // a full counter rings as well
                }
            };
            let thread = std::thread::Builder::new().name("names".into()).stack_size(STACK);
            if thread.spawn(work).is_ok() {
                started = Some(());
            }
        }
        started.map(|()| asking)
    }
}

impl AsFd for Names {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Names that are looked up at once.
const THREADS: usize = 4;
/// Names that may wait for a thread.
const WAITING: usize = 1024;
/// Addresses of a name that are tried.
const ADDRESSES: usize = 8;
/// Stack of a thread; the resolver's own buffers are on it.
const STACK: usize = 512 << 10;
