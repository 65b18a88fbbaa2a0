//! TLS of connections over TCP.

use super::{Bytes, TlsHandshake};
use serde::Serialize;

/// TLS 1.3 on connections over TCP: a handshake before the first request, and what its records add to everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tls {
    /// What client and server know of each other.
    pub handshake: TlsHandshake,
    /// Bytes of the certificate chain that the server sends in a full handshake.
    pub certificate_chain: Bytes,
}
