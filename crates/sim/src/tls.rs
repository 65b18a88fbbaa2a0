//! Sizes of what TLS 1.3 sends: the messages of its handshake, which both transports carry, and the records that carry them over
//! TCP. QUIC puts the same messages into CRYPTO frames.
//!
//! **Source.** RFC 8446 4 for the messages: X25519 key shares (32 bytes), one TLS_AES_128_GCM_SHA256 suite, an Ed25519 signature
//! (64 bytes; one by ECDSA would vary in length), Finished of 32 bytes, ALPN with a name of two letters, two session tickets as
//! rustls sends them; appendix D.4 for the compatibility mode of TCP (a session identifier of 32 bytes that the server returns, one
//! ChangeCipherSpec each way). RFC 8446 5 for records. RFC 8448 has traces with the same lengths where their contents are the same:
//! a ServerHello of 90 bytes (96 with a ticket), a record of 58 bytes for a Finished of 36.
//! **Deviations.** Clients differ: hellos of browsers are padded, or have a hybrid key share (X25519MLKEM768: 1184 bytes more from
//! the client, 1088 from the server). That takes packets and no round trip.

use crate::spec::{Tls, TlsHandshake};
use fleetfoot_core::units::Bytes;

/// Type and length of a handshake message.
pub(crate) const HEADER: usize = 4;

/// Version, random, suites, and the extensions for names, groups, key shares, signatures, versions and ALPN.
pub(crate) const CLIENT_HELLO: usize = 176;

/// The extensions `pre_shared_key` with a ticket of 32 bytes and its binder, `psk_key_exchange_modes` and `early_data`.
pub(crate) const PRE_SHARED_KEY: usize = 95;

/// Version, random, suite, the selected version and a key share.
pub(crate) const SERVER_HELLO: usize = 86;

/// The extension `pre_shared_key` of a server.
pub(crate) const SERVER_PSK: usize = 6;

/// ALPN.
pub(crate) const ENCRYPTED_EXTENSIONS: usize = 11;

/// Lengths in a Certificate message, and no extensions of two certificates.
pub(crate) const CERTIFICATE_LISTS: usize = 14;

/// Algorithm, length and an Ed25519 signature.
pub(crate) const CERTIFICATE_VERIFY: usize = 68;

/// A hash of SHA-256.
pub(crate) const FINISHED: usize = 32;

/// Lifetime, age, nonce, a ticket of 32 bytes and the extension `early_data`.
pub(crate) const NEW_SESSION_TICKET: usize = 61;

/// Tickets that a server sends.
pub(crate) const TICKETS: usize = 2;

/// Tag of AES-128-GCM.
pub(crate) const TAG: usize = 16;

/// The identifier of a session in a hello, over TCP.
const SESSION_ID: usize = 32;

/// The extension `early_data` of a server that accepts early data.
const EARLY_DATA: usize = 4;

/// Type, version and length of a record.
const RECORD_HEADER: usize = 5;

/// A record that is not protected and holds one byte.
const CHANGE_CIPHER_SPEC: usize = RECORD_HEADER + 1;

/// What a protected record has beside its content: its header, the type within and the tag.
const RECORD: usize = RECORD_HEADER + 1 + TAG;

/// Most content of a record (RFC 8446 5.1).
const LARGEST_CONTENT: u64 = 1 << 14;

/// Bytes on the connection of `content` bytes that are written at once.
pub(crate) fn protected(content: u64) -> u64 {
    content + RECORD as u64 * content.div_ceil(LARGEST_CONTENT)
}

/// What a handshake adds to a connection, in bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flights {
    /// What the client writes first.
    pub(crate) hello: u64,
    /// What the server answers.
    pub(crate) answer: u64,
    /// With what the client ends the handshake.
    pub(crate) finished: u64,
    /// Session tickets, which the server sends before its first answer.
    pub(crate) tickets: u64,
    /// Data goes with the hello.
    pub(crate) early: bool,
}

impl Flights {
    /// The flights of a connection.
    pub(crate) fn new(tls: &Tls) -> Flights {
        let Bytes(chain) = tls.certificate_chain;
        let early = tls.handshake == TlsHandshake::ZeroRtt;
        let resumed = tls.handshake != TlsHandshake::Full;
        let when = |condition: bool, bytes: usize| if condition { bytes } else { 0 };
        let hello = RECORD_HEADER + HEADER + CLIENT_HELLO + SESSION_ID + when(resumed, PRE_SHARED_KEY);
        let server_hello = RECORD_HEADER + HEADER + SERVER_HELLO + SESSION_ID + when(resumed, SERVER_PSK);
        let certificates = HEADER + CERTIFICATE_LISTS + chain as usize + HEADER + CERTIFICATE_VERIFY;
        let extensions = HEADER + ENCRYPTED_EXTENSIONS + when(early, EARLY_DATA);
        let answer = extensions + when(!resumed, certificates) + HEADER + FINISHED;
        let finished = RECORD + HEADER + FINISHED;
        Flights {
            // The ChangeCipherSpec of a client that sends data at once goes before it, else before its Finished.
            hello: (hello + when(early, CHANGE_CIPHER_SPEC)) as u64,
            answer: (server_hello + CHANGE_CIPHER_SPEC) as u64 + protected(answer as u64),
            // EndOfEarlyData is a message without content.
            finished: (finished
                + if early {
                    RECORD + HEADER
                } else {
                    CHANGE_CIPHER_SPEC
                }) as u64,
            tickets: (TICKETS * (RECORD + HEADER + NEW_SESSION_TICKET)) as u64,
            early,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_those_of_rfc_8448() {
        // Section 3: what the server protects at once, a Finished, 50 bytes of data.
        assert_eq!([657, 36, 50].map(protected), [679, 58, 72]);
        // ServerHellos of section 3 and, with a ticket, section 4; a Finished of either.
        assert_eq!(HEADER + SERVER_HELLO, 90);
        assert_eq!(HEADER + SERVER_HELLO + SERVER_PSK, 96);
        assert_eq!(HEADER + FINISHED, 36);
        // 16,384 bytes are one record, a byte more is two; nothing is none.
        assert_eq!([0, 1 << 14, (1 << 14) + 1].map(protected), [0, 16_406, 16_429]);
    }

    #[test]
    fn flights_are_the_sums_of_their_messages() {
        let flights = |handshake| {
            Flights::new(&Tls {
                handshake,
                certificate_chain: Bytes(2_500),
            })
        };
        let full = flights(TlsHandshake::Full);
        // A record of 5 + 4 + 176 + 32. ServerHello 5 + 4 + 86 + 32, ChangeCipherSpec 6, and 22 + 15 + 2518 + 72 + 36.
        assert_eq!((full.hello, full.answer), (217, 127 + 6 + 2_663));
        assert_eq!((full.finished, full.tickets), (6 + 58, 2 * 87));
        let resumed = flights(TlsHandshake::Resumed);
        assert_eq!(
            (resumed.hello, resumed.answer),
            (217 + 95, 133 + 6 + 22 + 15 + 36)
        );
        let early = flights(TlsHandshake::ZeroRtt);
        // ChangeCipherSpec goes with the hello; the server says that it accepts; EndOfEarlyData is a record of 26.
        assert_eq!(
            (early.hello, early.answer),
            (resumed.hello + 6, resumed.answer + 4)
        );
        assert_eq!((early.finished, early.early), (26 + 58, true));
    }
}
