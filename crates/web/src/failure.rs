//! What a page is told when something cannot be done: the program's message, and the place it is about.

use fleetfoot_lab::compare::study::StudyError;
use fleetfoot_lab::{run, scenario};
use serde_json::{Value, json};

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One sentence.
    message: String,
    /// The scenario's mistake, with its place.
    mistake: Option<Box<scenario::Error>>,
    /// Whether memory ran out: a page has to start its engine anew.
    memory: bool,
}

impl Failure {
    /// A failure that has no place in the scenario.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            mistake: None,
            memory: false,
        }
    }

    /// As the page gets it: `{message, text, file, line, column, key, help, memory}`; without a place `line` is 0 and `key` empty.
    pub(crate) fn to_json(&self) -> Value {
        match &self.mistake {
            Some(mistake) => json!({
                "message": mistake.message,
                "text": mistake.to_string(),
                "file": mistake.file,
                "line": mistake.line,
                "column": mistake.column,
                "key": mistake.key,
                "help": mistake.help,
                "memory": false,
            }),
            None => json!({
                "message": self.message,
                "text": self.message,
                "file": "",
                "line": 0,
                "column": 0,
                "key": "",
                "help": [],
                "memory": self.memory,
            }),
        }
    }
}

impl From<scenario::Error> for Failure {
    fn from(mistake: scenario::Error) -> Failure {
        Failure {
            message: mistake.message.to_string(),
            mistake: Some(Box::new(mistake)),
            memory: false,
        }
    }
}

impl From<run::Error> for Failure {
    fn from(error: run::Error) -> Failure {
        Failure {
            memory: matches!(error, run::Error::Memory { .. }),
            ..Failure::new(error.to_string())
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        match error {
            StudyError::Scenario(mistake) => Failure::from(*mistake),
            StudyError::Run(error) => Failure::from(error),
        }
    }
}
