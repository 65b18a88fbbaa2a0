//! Why the program ends without success, and its exit code.

use std::io::Write;
use std::process::ExitCode;

/// A failure that the user sees.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Bad input or usage.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure {
            code: 2,
            message: message.into(),
        }
    }

    /// Anything else.
    pub(crate) fn other(message: impl Into<String>) -> Failure {
        Failure {
            code: 1,
            message: message.into(),
        }
    }

    /// A file could not be written although it had been checked: a disk that filled up meanwhile.
    pub(crate) fn output(message: impl Into<String>) -> Failure {
        Failure::other(message)
    }

    /// What failed has been printed already.
    pub(crate) fn reported() -> Failure {
        Failure {
            code: 1,
            message: String::new(),
        }
    }

    /// Stopped by the user; what there is has been printed.
    pub(crate) fn interrupted() -> Failure {
        Failure {
            code: 130,
            message: String::new(),
        }
    }

    /// The reader of our output has gone: no error.
    pub(crate) fn closed_pipe() -> Failure {
        Failure {
            code: 0,
            message: String::new(),
        }
    }

    /// What the user is told.
    pub(crate) fn text(&self) -> &str {
        &self.message
    }

    fn document(&self) -> serde_json::Value {
        let message = escaped(self.message.trim_end());
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        serde_json::json!({ "code": self.code, "message": message })
    }

    /// What a document that is printed anyway says of it; it is then reported. `None`: there is nothing to say.
    pub(crate) fn take_document(&mut self) -> Option<serde_json::Value> {
        let document = (!self.message.is_empty()).then(|| self.document());
        self.message.clear();
        document
    }

    /// Reports it to the user, as a JSON document on stdout if `json`.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if !self.message.is_empty() {
            let message = escaped(self.message.trim_end());
            let message = message.as_str();
            // A closed stream at this point leaves nobody to report to.
            if json {
                let document = serde_json::json!({ "error": self.document() });
                let mut stdout = std::io::stdout();
                let printed = writeln!(stdout, "{document}").and_then(|()| stdout.flush());
                if printed.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
                    let _ = writeln!(std::io::stderr(), "error: {message}");
                }
            } else {
                let prefix = if message.starts_with("error") {
                    ""
                } else {
                    "error: "
                };
                let _ = writeln!(std::io::stderr(), "{prefix}{message}");
            }
        }
        ExitCode::from(self.code)
    }
}

/// The message without what a terminal would obey: names and lines of files are quoted in it.
fn escaped(message: &str) -> String {
    let shown = |c: char| match c {
        '\n' => c,
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    message.chars().map(shown).collect()
}

impl From<fleetfoot_lab::scenario::Error> for Failure {
    fn from(error: fleetfoot_lab::scenario::Error) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl From<fleetfoot_lab::folder::Error> for Failure {
    fn from(error: fleetfoot_lab::folder::Error) -> Failure {
        match error {
            fleetfoot_lab::folder::Error::Refused(message) => Failure::usage(message),
            fleetfoot_lab::folder::Error::Failed(message) => Failure::output(message),
        }
    }
}

impl From<fleetfoot_lab::run::Error> for Failure {
    fn from(error: fleetfoot_lab::run::Error) -> Failure {
        match error {
            fleetfoot_lab::run::Error::Engine { .. } => Failure::usage(error.to_string()),
            fleetfoot_lab::run::Error::Memory { .. } => Failure::other(format!(
                "{error}. Finished runs are kept where there is an output folder."
            )),
            fleetfoot_lab::run::Error::Threads(_) | fleetfoot_lab::run::Error::Store(..) => {
                Failure::other(error.to_string())
            }
        }
    }
}
