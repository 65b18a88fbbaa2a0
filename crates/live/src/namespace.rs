//! A network namespace that lives as long as a closure.

use crate::{Clock, Error};
use fleetfoot_core::time::Duration;
use nix::sched::{CloneFlags, unshare};
use std::marker::PhantomData;
use std::process::{Command, Stdio};

/// A network namespace of its own: no interface but loopback, sysctls at their defaults, gone when the closure returns and
/// its sockets are closed. Nothing has to be cleaned up, also not after Ctrl-C or a kill.
pub struct Namespace {
    /// A namespace belongs to the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Namespace {
    /// Runs `work` in a fresh namespace, in a thread of its own.
    pub fn run<T: Send>(work: impl FnOnce(&Namespace) -> Result<T, Error> + Send) -> Result<T, Error> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| {
                    Error::new("cannot make a network namespace", errno).needing(NAMESPACES)
                })?;
                crate::thread::prefer();
                let namespace = Namespace { thread: PhantomData };
                namespace.ip("link set lo up")?;
                work(&namespace)
            });
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Whether this machine lets us make namespaces and TUN devices; else the reason.
    pub fn available() -> Result<(), Error> {
        Namespace::run(|namespace| namespace.tun("tun0", 1500).map(|_| ()))
    }

    /// Runs lines of `ip -batch` (iproute2) inside.
    pub fn ip(&self, lines: &str) -> Result<(), Error> {
        crate::ip::ip(lines)
    }

    /// Runs a shell command inside; gives its standard output, or an error with its standard error.
    pub fn shell(&self, command: &str) -> Result<String, Error> {
        let output = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .output()
            .map_err(|cause| Error::new("cannot run sh", cause))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::new(
            format!("command {command:?} ended with {}", output.status),
            std::io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        ))
    }

    /// Sets a sysctl of this namespace, named with dots or slashes below /proc/sys.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::write(&path, value)
            .map_err(|cause| Error::new(format!("cannot set {path} to {value:?}"), cause))
    }

    /// Whether a sysctl has this value, white space aside.
    pub fn sysctl_is(&self, name: &str, value: &str) -> bool {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(path).is_ok_and(|text| text.split_whitespace().eq(value.split_whitespace()))
    }

    /// A TUN device inside, up, without addresses.
    pub fn tun(&self, name: &str, mtu: u32) -> Result<crate::Tun, Error> {
        let tun = crate::Tun::open(name)?;
        self.ip(&format!("link set dev {name} mtu {mtu} up"))?;
        Ok(tun)
    }

    /// Waits until `condition` holds, looking at growing intervals up to a millisecond; false if it did not within `limit`.
    pub fn wait(clock: &Clock, limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
        let deadline = clock.now() + limit;
        let mut pause = Duration::from_micros(20);
        while !condition() {
            if clock.now() >= deadline {
                return false;
            }
            clock.sleep_until(clock.now() + pause);
            pause = pause.saturating_mul(2).min(Duration::from_millis(1));
        }
        true
    }
}

/// What a namespace and its interfaces need.
pub(crate) const NAMESPACES: &str = "CAP_NET_ADMIN and CAP_SYS_ADMIN";
