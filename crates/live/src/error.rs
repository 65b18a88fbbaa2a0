//! What a live verb needs and this machine does not give.

use std::io;

/// What a live verb needs and this machine does not give.
#[derive(Debug)]
pub struct Error {
    /// What was tried.
    pub what: String,
    /// What the kernel answered.
    pub cause: io::Error,
    /// What is needed for it beside root, for a cause that is a missing permission.
    needs: Option<&'static str>,
}

impl Error {
    /// `what` was tried, and failed by `cause`.
    pub fn new(what: impl Into<String>, cause: impl Into<io::Error>) -> Error {
        Error {
            what: what.into(),
            cause: cause.into(),
            needs: None,
        }
    }

    /// Whoever has `what` may do it without being root.
    pub(crate) fn needing(self, what: &'static str) -> Error {
        Error {
            needs: Some(what),
            ..self
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
            match self.needs {
                Some(needs) => write!(formatter, " (this needs root, or {needs})")?,
                None => formatter.write_str(" (this needs root)")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;
    use std::io::ErrorKind::{NotFound, PermissionDenied};

    #[test]
    fn what_is_needed_is_said_where_a_permission_is_missing_and_only_there() {
        let error = |kind| Error::new("cannot open a packet socket", kind);
        assert_eq!(
            error(PermissionDenied).needing("CAP_NET_RAW").to_string(),
            "cannot open a packet socket: permission denied (this needs root, or CAP_NET_RAW)"
        );
        assert!(
            error(PermissionDenied)
                .to_string()
                .ends_with(" (this needs root)")
        );
        assert!(
            !error(NotFound)
                .needing("CAP_NET_RAW")
                .to_string()
                .contains("needs")
        );
    }
}
