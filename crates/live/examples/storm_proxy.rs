//! Random requests to the proxy in a plain loop, without a fuzzer's instrumentation: many times faster than libFuzzer, and blind.
//!
//! `cargo run --profile ci -p fleetfoot-live --example storm_proxy -- requests [--runs N] [--seconds N] [--seed N]`.
//! Valid requests of SOCKS5 and CONNECT are changed at random (bytes, pieces that go, come twice or change places, the end cut off) and
//! played by `fuzz/inputs/requests.rs`.
//!
//! Input `n` of seed `s` is made from `s` and `n` alone. Progress goes to stderr, the line for the log to stdout, after
//! Ctrl-C too. A failure prints the arguments that repeat it.

#[cfg(target_os = "linux")]
#[path = "../../../fuzz/inputs/requests.rs"]
mod requests;
#[cfg(target_os = "linux")]
#[path = "../../core/examples/storm/runner.rs"]
#[expect(dead_code, reason = "the storms of core draw in more ways")]
mod runner;

#[cfg(target_os = "linux")]
mod storm {
    use crate::requests;
    use crate::runner::{Draw, Storm, fail, run};

    /// Requests that are valid, or nearly so.
    const SEEDS: &[&[u8]] = &[
        b"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50early data",
        b"\x05\x02\x00\x02\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb",
        b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x00\x16",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Connection: keep-alive\r\n\r\nhello",
        b"CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n",
    ];

    #[derive(Default)]
    struct Requests {
        bytes: Vec<u8>,
        total: u64,
    }

    impl Storm for Requests {
        fn play(&mut self, seed: u64, index: u64) {
            let mut draw = Draw::new(seed, index);
            let mut pick = |n: usize| draw.below(n as u64) as usize;
            self.bytes.clear();
            self.bytes.push(pick(64) as u8);
            self.bytes.extend_from_slice(SEEDS[pick(SEEDS.len())]);
            for _ in 0..pick(5) {
                let length = self.bytes.len();
                let at = 1 + pick(length - 1).min(length - 2);
                match pick(6) {
                    0 => self.bytes[at] = pick(256) as u8,
                    1 => self.bytes[at] ^= 1 << pick(8),
                    2 => self.bytes.truncate(at + 1),
                    3 => {
                        let end = (at + 1 + pick(16)).min(length);
                        if end - at < length - 2 {
                            self.bytes.drain(at..end);
                        }
                    }
                    4 => {
                        let end = (at + 1 + pick(64)).min(length);
                        self.bytes.extend_from_within(at..end);
                    }
                    _ => {
                        let other = 1 + pick(length - 1);
                        self.bytes.swap(at, other);
                    }
                }
                if self.bytes.len() < 3 {
                    break;
                }
            }
            self.total += self.bytes.len() as u64;
            requests::run(&self.bytes);
        }

        fn summary(&self) -> String {
            format!("{} bytes", self.total)
        }
    }

    pub(crate) fn main() {
        let mut arguments = std::env::args().skip(1);
        match arguments.next().as_deref() {
            Some("requests") => run(&mut Requests::default(), arguments),
            other => fail(&format!("choose requests, not {other:?}")),
        }
    }
}

#[cfg(target_os = "linux")]
fn main() {
    storm::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}
