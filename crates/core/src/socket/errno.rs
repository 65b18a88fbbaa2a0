//! `Errno`: what a call says when it fails, with Linux's names and numbers (`errno(3)`).

use core::fmt;

macro_rules! errnos {
    ($($name:ident = $number:literal, $doc:literal;)*) => {
        /// Why a call failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Errno {
            $(#[doc = $doc] $name = $number,)*
        }

        impl Errno {
            /// Every one, in the order of their numbers.
            pub const ALL: &'static [Errno] = &[$(Errno::$name,)*];

            /// The name `errno(3)` gives it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                }
            }

            /// What it means, in `strerror(3)`'s words.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Errno::$name => $doc,)*
                }
            }
        }
    };
}

errnos! {
    EBADF = 9, "Bad file descriptor";
    EAGAIN = 11, "Resource temporarily unavailable";
    EACCES = 13, "Permission denied";
    EFAULT = 14, "Bad address";
    EINVAL = 22, "Invalid argument";
    EMFILE = 24, "Too many open files";
    EPIPE = 32, "Broken pipe";
    EDOM = 33, "Numerical argument out of domain";
    ENONET = 64, "Machine is not on the network";
    EPROTO = 71, "Protocol error";
    EDESTADDRREQ = 89, "Destination address required";
    EMSGSIZE = 90, "Message too long";
    ENOPROTOOPT = 92, "Protocol not available";
    EOPNOTSUPP = 95, "Operation not supported";
    EAFNOSUPPORT = 97, "Address family not supported by protocol";
    EADDRINUSE = 98, "Address already in use";
    EADDRNOTAVAIL = 99, "Cannot assign requested address";
    ENETUNREACH = 101, "Network is unreachable";
    ECONNABORTED = 103, "Software caused connection abort";
    ECONNRESET = 104, "Connection reset by peer";
    ENOBUFS = 105, "No buffer space available";
    EISCONN = 106, "Transport endpoint is already connected";
    ENOTCONN = 107, "Transport endpoint is not connected";
    ETIMEDOUT = 110, "Connection timed out";
    ECONNREFUSED = 111, "Connection refused";
    EHOSTDOWN = 112, "Host is down";
    EHOSTUNREACH = 113, "No route to host";
    EALREADY = 114, "Operation already in progress";
    EINPROGRESS = 115, "Operation now in progress";
}

impl Errno {
    /// The number Linux uses.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The error called `name`; `EWOULDBLOCK` is `EAGAIN`.
    pub fn by_name(name: &str) -> Option<Errno> {
        if name == "EWOULDBLOCK" {
            return Some(Errno::EAGAIN);
        }
        Errno::ALL.iter().copied().find(|errno| errno.name() == name)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.text())
    }
}

impl core::error::Error for Errno {}
