//! Applications on both sides: what they send is noise, and what comes back is compared by its hash.

use fleetfoot_core::socket::{Errno, How};
use fleetfoot_live::host::{Handle, Host, Waiter};
use fleetfoot_live::{Error, calls};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that look like nothing, the same for the same seed (splitmix64).
#[derive(Clone)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }
}

/// How long anything may take: a hang is a failure, not a wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends `bytes` of noise on each of some connections of the kernel's, and compares what comes back until the end, which comes
/// after ours.
pub(crate) fn kernel_clients(to: SocketAddr, connections: usize, bytes: u64) {
    std::thread::scope(|scope| {
        for number in 0..connections {
            let client = move || kernel_client(to, number as u64, bytes);
            std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, client)
                .expect("a thread");
        }
    });
}

fn kernel_client(to: SocketAddr, seed: u64, bytes: u64) {
    let mut stream = connected(to);
    let mut writer = stream.try_clone().expect("a descriptor");
    let sent = std::thread::spawn(move || {
        let (mut noise, mut hash) = (Noise(seed), blake3::Hasher::new());
        let mut buffer = vec![0; 65_536];
        let mut left = bytes;
        while left > 0 {
            let length = left.min(buffer.len() as u64) as usize;
            noise.fill(&mut buffer[..length]);
            hash.update(&buffer[..length]);
            writer.write_all(&buffer[..length]).expect("room");
            left -= length as u64;
        }
        writer.shutdown(Shutdown::Write).expect("open");
        hash.finalize()
    });
    let (hash, count) = read_to_end(&mut stream);
    let sent = sent.join().expect("all was sent");
    assert_eq!(count, bytes);
    assert_eq!(hash, sent);
}

/// A connection of the kernel's; on a bad path the handshake may take a while.
pub(crate) fn connected(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    stream.set_write_timeout(Some(PATIENCE)).expect("an option");
    stream
}

pub(crate) fn read_to_end(stream: &mut TcpStream) -> (blake3::Hash, u64) {
    let (mut hash, mut count) = (blake3::Hasher::new(), 0);
    let mut buffer = vec![0; 65_536];
    loop {
        let length = stream.read(&mut buffer).expect("an end");
        if length == 0 {
            return (hash.finalize(), count);
        }
        count += length as u64;
        hash.update(&buffer[..length]);
    }
}

/// Very many connections of the kernel's at once from one thread, all open at the same time: little on each.
pub(crate) fn many_kernel_clients(to: SocketAddr, connections: usize, bytes: usize) {
    let mut streams: Vec<TcpStream> = (0..connections).map(|_| connected(to)).collect();
    let mut hashes = Vec::new();
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut sent = vec![0; bytes];
        Noise(number as u64).fill(&mut sent);
        stream.write_all(&sent).expect("room");
        stream.shutdown(Shutdown::Write).expect("open");
        hashes.push(blake3::hash(&sent));
    }
    for (stream, sent) in streams.iter_mut().zip(hashes) {
        assert_eq!(read_to_end(stream), (sent, bytes as u64));
    }
}

/// An echo server on the kernel's TCP.
pub(crate) struct KernelEcho {
    stop: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
    at: SocketAddr,
}

impl KernelEcho {
    /// Listens at `at`, in the namespace of this thread.
    pub(crate) fn start(at: SocketAddr) -> KernelEcho {
        let listener = TcpListener::bind(at).expect("a free port");
        // std asks for a backlog of 128; more may come at once.
        calls::listen(listener.as_raw_fd(), 4096).expect("it listens already");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let accepting = std::thread::spawn(move || {
            let mut sessions = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                let stream = stream.expect("a connection");
                let session = std::thread::Builder::new().stack_size(256 << 10);
                sessions.push(session.spawn(move || kernel_echo(stream)).expect("a thread"));
            }
            for session in sessions {
                session.join().expect("content");
            }
        });
        KernelEcho { stop, accepting, at }
    }

    /// Ends it when its connections have ended.
    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Release);
        drop(TcpStream::connect(self.at)); // so that it looks
        self.accepting.join().expect("content");
    }
}

pub(crate) fn kernel_echo(mut stream: TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    stream.set_write_timeout(Some(PATIENCE)).expect("an option");
    let mut buffer = vec![0; 65_536];
    loop {
        let length = stream.read(&mut buffer).expect("an end");
        if length == 0 {
            stream.shutdown(Shutdown::Write).expect("open");
            return;
        }
        stream.write_all(&buffer[..length]).expect("room");
    }
}

/// One of our connections to an echo.
struct OurClient {
    noise: Noise,
    left: u64,
    buffer: Vec<u8>,
    offered: usize,
    sent: blake3::Hasher,
    received: blake3::Hasher,
    count: u64,
    finished: bool,
}

impl OurClient {
    /// Writes and reads what can be; true at the end of the stream.
    fn go_on(&mut self, host: &mut Host, handle: Handle, room: &mut [u8]) -> Result<bool, Errno> {
        while !self.finished {
            if self.offered == self.buffer.len() {
                let length = self.left.min(16_384) as usize;
                self.buffer.resize(length, 0);
                self.offered = 0;
                self.left -= length as u64;
                self.noise.fill(&mut self.buffer);
                self.sent.update(&self.buffer);
                if length == 0 {
                    host.shutdown(handle, How::Write)?;
                    self.finished = true;
                    break;
                }
            }
            match host.write(handle, &self.buffer[self.offered..]) {
                Ok(length) => self.offered += length,
                Err(Errno::EAGAIN) => break,
                Err(errno) => return Err(errno),
            }
            if self.offered < self.buffer.len() {
                break;
            }
        }
        loop {
            match host.read(handle, room) {
                Ok(0) => return Ok(true),
                Ok(length) => {
                    self.count += length as u64;
                    self.received.update(&room[..length]);
                }
                Err(Errno::EAGAIN) => return Ok(false),
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// Sends `bytes` of noise on each of some connections of ours at once, and compares what comes back.
pub(crate) fn our_clients(
    host: &mut Host,
    to: SocketAddr,
    connections: usize,
    bytes: u64,
) -> Result<(), Error> {
    let mut clients: Vec<Option<(Handle, OurClient)>> = Vec::new();
    for number in 0..connections {
        let handle = host.connect(to).expect("a way");
        if clients.len() <= handle.index() {
            clients.resize_with(handle.index() + 1, || None);
        }
        let client = OurClient {
            noise: Noise(number as u64),
            left: bytes,
            buffer: Vec::new(),
            offered: 0,
            sent: blake3::Hasher::new(),
            received: blake3::Hasher::new(),
            count: 0,
            finished: false,
        };
        clients[handle.index()] = Some((handle, client));
    }
    let mut waiter = Waiter::new()?;
    waiter.add(host, 0)?;
    let (mut room, mut ready) = (vec![0; 65_536], Vec::new());
    let (mut open, mut last) = (connections, Instant::now());
    while open > 0 || host.stack().slots_in_use() > 0 {
        let more = host.work()?;
        while let Some(event) = host.poll_event() {
            let Some((handle, client)) = &mut clients[event.handle.index()] else {
                continue;
            };
            last = Instant::now();
            if client
                .go_on(host, *handle, &mut room)
                .expect("the connection holds")
            {
                assert_eq!(client.count, bytes);
                assert_eq!(client.received.finalize(), client.sent.finalize());
                host.close(*handle);
                clients[event.handle.index()] = None;
                open -= 1;
            }
        }
        host.flush()?;
        assert!(last.elapsed() < PATIENCE, "{open} connections hang");
        let soon = host.clock().now() + fleetfoot_core::time::Duration::from_secs(1);
        let next = host.poll_timeout().map_or(soon, |due| due.min(soon));
        waiter.wait(
            host.clock(),
            Some(if more { host.clock().now() } else { next }),
            &mut ready,
        )?;
        ready.clear();
    }
    Ok(())
}
