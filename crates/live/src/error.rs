//! What a live verb needs and this machine does not give.

use std::io;

/// What a live verb needs and this machine does not give.
#[derive(Debug)]
pub struct Error {
    /// What was tried.
    pub what: String,
    /// What the kernel answered.
    pub cause: io::Error,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, cause: impl Into<io::Error>) -> Error {
        Error {
            what: what.into(),
            cause: cause.into(),
        }
    }

    /// Another part failed and has said why.
    pub(crate) fn abandoned() -> Error {
        Error::new(ABANDONED, io::ErrorKind::BrokenPipe)
    }

    /// Whether this is [`Error::abandoned`].
    pub(crate) fn is_abandoned(&self) -> bool {
        self.what == ABANDONED
    }
}

const ABANDONED: &str = "the link could not be set up";

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.what, self.cause)?;
        if self.cause.kind() == io::ErrorKind::PermissionDenied {
            formatter.write_str(" (this needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN)")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
