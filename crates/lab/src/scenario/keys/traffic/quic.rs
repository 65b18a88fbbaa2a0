//! Keys of the traffic kinds that use QUIC.

use crate::scenario::keys::Default::{Described, Required, Value};
use crate::scenario::keys::{ARRIVALS, COUNT, Key, Kind, KindKeys, POSITIVE_TIME, SIZES, key};
use fleetfoot_sim::spec::{QuicController, TlsHandshake, TrafficKind};

const CONTROLLER: Key = key(
    "controller",
    Kind::Choice(QuicController::NAMES),
    Value("\"quinn-cubic\""),
    "Congestion control: one of quinn's, or one of those that TCP has here, with its default parameters. Missing are those that need a pacing rate (`bbr`, `bbr3`: quinn paces by window and round-trip time) or the share of marks (`dctcp`, `prague`).",
);

const INITIAL_WINDOW: Key = key(
    "initial_window",
    Kind::Bytes(2_400, 1_000_000_000),
    Value("\"12 kB\""),
    "Congestion window at the start (RFC 9002 7.2, in datagrams of 1200 bytes).",
);

const ECN: Key = key(
    "ecn",
    Kind::Flag,
    Value("true"),
    "Packets carry ECT(0), and a mark counts as a loss (RFC 9002 7.1), as quinn does where the system lets it.",
);

const HANDSHAKE: Key = key(
    "handshake",
    Kind::Choice(TlsHandshake::NAMES),
    Value("\"full\""),
    "`full`: the server sends its certificates. `resumed`: the client has a session ticket, and it does not. `0-rtt`: with the ticket the client sends its first data at once.",
);

const TOKEN: Key = key(
    "token",
    Kind::Flag,
    Described("true with `resumed` and `0-rtt`, else false"),
    "The client brings an address token of an earlier connection (RFC 9000 8.1.3), so the server may answer its first datagram with more than three times its bytes. False: it comes from a new address, as after a change of network.",
);

const CERTIFICATE_CHAIN: Key = key(
    "certificate_chain",
    Kind::Bytes(100, 12_000),
    Value("\"2500 B\""),
    "Bytes of the certificates in a full handshake: two of ECDSA as public authorities issue them (ours). Until it has heard from the client twice, a server sends three times what it received (RFC 9000 8.1): without `token`, chains above about 3 kB take another round trip.",
);

const LARGEST: Key = key(
    "largest_datagram",
    Kind::Bytes(1_200, 65_507),
    Described("1452 B, or what the path takes"),
    "UDP payload of a datagram at most. A connection begins with 1200 bytes and searches for more by probes (RFC 8899); 1200 switches that off.",
);

const ACK_EVERY: Key = key(
    "ack_every",
    Kind::Integer(1, 1_000),
    Described("every second packet, without the extension"),
    "The data sender asks for an acknowledgment of every so many packets (draft-ietf-quic-ack-frequency).",
);

const MAX_ACK_DELAY: Key = key(
    "max_ack_delay",
    POSITIVE_TIME,
    Described("25 ms, without the extension"),
    "The data sender asks that no acknowledgment be kept back longer (the same extension).",
);

const STREAM_WINDOW: Key = key(
    "stream_window",
    Kind::Bytes(1_200, 1 << 40),
    Value("\"1250 kB\""),
    "What a receiver has room for on each stream, which limits the rate to a window per round trip. All streams of a connection together have eight such windows on the way at most, and never less than 10 MB (quinn's `send_window`).",
);

pub(super) const QUIC: KindKeys = KindKeys {
    name: TrafficKind::Quic.name(),
    doc: "Transfers over QUIC, played by quinn-proto: one connection each, opened by the data sender as those of `transfer` are, whether or not earlier ones are done. The completion time is from the first packet of the handshake to the arrival of the last byte. For programs built with `--features quic`.",
    keys: &[
        key("size", SIZES, Required, "Payload bytes of each."),
        key("arrivals", Kind::Tagged(&ARRIVALS), Required, "When they start."),
        key("count", COUNT, Described("no limit"), "Most transfers."),
        CONTROLLER,
        INITIAL_WINDOW,
        ECN,
        HANDSHAKE,
        TOKEN,
        CERTIFICATE_CHAIN,
        LARGEST,
        ACK_EVERY,
        MAX_ACK_DELAY,
        STREAM_WINDOW,
    ],
};

pub(super) const QUIC_WEB: KindKeys = KindKeys {
    name: TrafficKind::QuicWeb.name(),
    doc: "Users who load pages over QUIC, the counterpart of `web`: a document, then all its objects at once, each on a stream of the one connection of the page. A flow is a page, its completion time the page load time. For programs built with `--features quic`.",
    keys: &[
        super::USERS,
        super::DOCUMENT,
        key(
            "objects",
            Kind::Integer(0, 10_000),
            Value("40"),
            "Objects of a page; 100 at a time.",
        ),
        super::OBJECT,
        key(
            "request",
            Kind::Bytes(1, 1_200),
            Value("\"300 B\""),
            "Bytes of each request, towards the data sender.",
        ),
        super::THINK,
        super::SERVER_TIME,
        super::DEMAND,
        CONTROLLER,
        INITIAL_WINDOW,
        ECN,
        HANDSHAKE,
        TOKEN,
        CERTIFICATE_CHAIN,
        LARGEST,
        ACK_EVERY,
        MAX_ACK_DELAY,
        STREAM_WINDOW,
    ],
};
