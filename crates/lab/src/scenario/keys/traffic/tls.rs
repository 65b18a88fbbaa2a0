//! Keys of TLS over TCP.

use crate::scenario::keys::Default::Value;
use crate::scenario::keys::{Key, Kind, key};
use fleetfoot_sim::spec::TlsHandshake;

pub(super) const TLS: Key = key(
    "tls",
    Kind::Choice(&["none", "1.3"]),
    Value("\"none\""),
    "`1.3`: before the first request on each connection there is a handshake of TLS 1.3 (RFC 8446), one round trip after that of TCP, and everything goes in records, which add 22 bytes to each write of up to 16 kB. Completion times have it in them; goodput counts what TCP delivers.",
);

pub(super) const HANDSHAKE: Key = key(
    "handshake",
    Kind::Choice(TlsHandshake::NAMES),
    Value("\"full\""),
    "With `tls`, on each connection alike. `full`: the server sends its certificates. `resumed`: the client has a session ticket, and it does not. `0-rtt`: with the ticket the client sends its first request at once, and the handshake takes no round trip.",
);

pub(super) const CERTIFICATE_CHAIN: Key = key(
    "certificate_chain",
    Kind::Bytes(100, 100_000),
    Value("\"2500 B\""),
    "With `tls`: bytes of the certificates in a full handshake: two of ECDSA as public authorities issue them (ours). Other messages have the sizes that they have over QUIC here, without a post-quantum key share, which would add 1.2 kB from the client and 1.1 kB from the server.",
);
