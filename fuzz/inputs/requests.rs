//! Any bytes as the first of a client of the proxy: nothing panics, no more is kept than the limit, and what comes of them does not
//! depend on the pieces in which they came.

use fleetfoot_live::proxy::{Handshake, MOST, Progress, Refusal, Target};

/// One input of the fuzzer: the length of pieces, and what the client sends.
pub(crate) fn run(bytes: &[u8]) {
    let [piece, bytes @ ..] = bytes else { return };
    let whole = conversation(bytes, MOST);
    let pieces = conversation(bytes, usize::from(*piece).max(1));
    assert_eq!(whole, pieces);
    let Conversation {
        progress,
        answer,
        rest,
        ..
    } = whole;
    match progress {
        Progress::More => assert!(bytes.len() < MOST),
        Progress::Complete(target) => {
            assert_eq!(Target::of_authority(&target.to_string()), Some(target));
            assert!(rest.len() < bytes.len() && bytes.ends_with(&rest));
        }
        Progress::Refused(_) => assert!(answer.len() < 1000, "no amplification"),
    }
}

/// What came of a client's bytes.
#[derive(Debug, PartialEq, Eq)]
struct Conversation {
    progress: Progress,
    answer: Vec<u8>,
    /// What follows a request that is complete.
    rest: Vec<u8>,
}

fn conversation(bytes: &[u8], piece: usize) -> Conversation {
    let (mut handshake, mut answer) = (Handshake::default(), Vec::new());
    let mut left = bytes;
    let mut progress = Progress::More;
    while progress == Progress::More && !left.is_empty() {
        let length = piece.min(handshake.room()).min(left.len());
        assert!(length > 0, "whoever wants more has room for it");
        let (now, later) = left.split_at(length);
        progress = handshake.take(now, &mut answer);
        left = later;
    }
    if let Progress::Refused(refusal) = progress {
        answer.extend(handshake.refused(refusal));
    } else {
        // A client may be refused at any time.
        for refusal in [Refusal::TooSlow, Refusal::NotAllowed, Refusal::Busy] {
            let _ = handshake.refused(refusal);
        }
        let _ = handshake.accepted(None);
    }
    let mut rest = Vec::new();
    if let Progress::Complete(_) = progress {
        rest = handshake.into_rest();
        assert!(rest.len() <= MOST);
        rest.extend_from_slice(left);
    }
    Conversation {
        progress,
        answer,
        rest,
    }
}
