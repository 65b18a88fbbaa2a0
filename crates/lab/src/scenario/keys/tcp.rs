//! Keys of endpoints.

use super::Default::{Described, Value};
use super::{Key, Kind, KindKeys, KindTable, NANOSECOND, POSITIVE_TIME, key};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::tcp::{Config, HiddenLoss, InFlight, Profile, Switch, SwitchForm};
use fleetfoot_core::time::Duration;

/// `[tcp]`: the profile, the switches of the core's table, and the host's interface.
pub(crate) static TCP: &[Key] = &KEYS;

static KEYS: [Key; COUNT] = {
    let mut keys = [PROFILE; COUNT];
    let (mut place, mut index) = (1, 0);
    while index < Config::SWITCHES.len() {
        if let Some(switch) = switch(&Config::SWITCHES[index]) {
            keys[place] = switch;
            place += 1;
        }
        index += 1;
    }
    keys[place] = INTERFACE[0];
    keys[place + 1] = INTERFACE[1];
    keys[place + 2] = INTERFACE[2];
    keys
};

const COUNT: usize = {
    let (mut count, mut index) = (4, 0); // the profile, and what is no switch
    while index < Config::SWITCHES.len() {
        count += Config::SWITCHES[index].key.is_some() as usize;
        index += 1;
    }
    count
};

/// The key of a switch, if it has one.
const fn switch(switch: &Switch) -> Option<Key> {
    let Some(name) = switch.key else {
        return None;
    };
    let kind = match switch.form {
        SwitchForm::Values([kind]) => Kind::of(*kind),
        SwitchForm::Values(kinds) => Kind::Forms(kinds),
        SwitchForm::CongestionControl => Kind::CongestionControl,
        SwitchForm::DelayedAck => Kind::Either(&DELAYED_ACK_FORMS),
        SwitchForm::Rdb => Kind::Either(&RDB_FORMS),
    };
    Some(key(name, kind, Described("as the profile"), switch.doc))
}

static DELAYED_ACK_FORMS: [Kind; 2] = [
    Kind::Choice(&["off", "standard", "linux"]),
    Kind::Tagged(&DELAYED_ACK),
];

static RDB_FORMS: [Kind; 2] = [Kind::Choice(&["off", "one", "all"]), Kind::Table(RDB)];

const PROFILE: Key = key(
    "profile",
    Kind::Choice(&Profile::NAMES),
    Value("\"linux\""),
    "A complete set of all switches.",
);

/// What is no switch of the endpoint.
static INTERFACE: [Key; 3] = [
    key(
        "super_packets",
        Kind::Either(&[
            Kind::Choice(&[
                "off",
                "timer",
                "burst",
                "accumulate",
                "fixed",
                "estimate",
                "segment",
            ]),
            Kind::Table(SUPER_PACKETS),
        ]),
        Described("off"),
        "Mark outgoing packets as super-packets, which routers that know them admit or refuse as a whole: a mode, or a table.",
    ),
    key(
        "host_coalesce",
        Kind::Duration(Duration::ZERO, Duration::from_secs(1)),
        Described("0 s: each at once"),
        "Interrupt coalescing at both hosts: packets that arrive are handed up together, so long after the first of them.",
    ),
    key(
        "fast_open",
        Kind::Flag,
        Described("false"),
        "TCP Fast Open (RFC 7413): whoever opens a connection puts its first data on the SYN, with a cookie that it got on an earlier visit.",
    ),
];

/// `super_packets`.
pub(crate) static SUPER_PACKETS: &[Key] = &[
    key(
        "mode",
        Kind::Choice(&["timer", "burst", "accumulate", "fixed", "estimate", "segment"]),
        Value("\"timer\""),
        "When a group is complete: after a silence of `t_buffer`; at once, with what TCP sends at one moment; when `max` packets are there or an eighth of the smoothed RTT has passed; without waiting, a fixed length of `max` or the length of the window before; or it is one segment of TCP, of `max` packets, which arrives whole or not at all.",
    ),
    key(
        "t_buffer",
        POSITIVE_TIME,
        Described("60 us"),
        "Mode `timer`: how long a packet waits for the next one. Mode `accumulate`: longest wait while there is no RTT. Mode `estimate`: the silence that ends a window.",
    ),
    key(
        "hold",
        POSITIVE_TIME,
        Described("as long as packets come"),
        "Mode `timer`: longest time that a packet is held, as by `fleetfoot mark`.",
    ),
    key(
        "max",
        Kind::Integer(2, 255),
        Value("10"),
        "Most packets of a group; a layout may allow fewer. Mode `segment`: packets of a full segment, so that the MSS is as many times as large.",
    ),
    key(
        "layout",
        Kind::Choice(Layout::NAMES),
        Value("\"B\""),
        "Where marks stand: type of service and identification (A), a codepoint and the identification (B), an IPv6 option (C, eight bytes).",
    ),
    key(
        "codepoint",
        Kind::Integer(1, 63),
        Described("3"),
        "Layout B: the codepoint that says that the identification carries a mark.",
    ),
    key(
        "declare",
        Kind::Either(&[Kind::Integer(1, 255), Kind::Text]),
        Value("\"true\""),
        "The length that packets announce: \"true\" (what it is), \"+5\" or \"-5\" (so many more or fewer), or always this number.",
    ),
];

/// `rdb`.
pub(crate) static RDB: &[Key] = &[
    key(
        "thin",
        Kind::Either(&[Kind::Choice(&["dynamic"]), Kind::Integer(1, 1_000_000)]),
        Value("\"dynamic\""),
        "When a stream is thin: with fewer segments in flight than this number; or `dynamic`, while segments in flight times `min_interval` are less than the RTT.",
    ),
    key(
        "min_interval",
        Kind::Duration(Duration::from_millis(10), super::DAY),
        Value("\"10 ms\""),
        "Least time between segments of a thin stream (RFC 4828: not below 10 ms).",
    ),
    key(
        "rtt",
        Kind::Choice(&["smallest", "smoothed"]),
        Value("\"smallest\""),
        "Which RTT `dynamic` compares with.",
    ),
    key(
        "in_flight",
        Kind::Choice(&InFlight::NAMES),
        Value("\"pipe\""),
        "What counts as in flight: without what is SACKed or lost, or all that is not acknowledged.",
    ),
    key(
        "max_segments",
        Kind::Integer(0, 255),
        Value("1"),
        "Older segments that a packet may carry along; 0: as many as fit.",
    ),
    key(
        "max_payload",
        Kind::Bytes(0, 65_535),
        Value("\"0 B\""),
        "Largest payload of such a packet; 0: the MSS.",
    ),
    key(
        "detect",
        Kind::Choice(&HiddenLoss::NAMES),
        Value("\"dsack\""),
        "How losses that a packet repaired are found: not at all, by the number of an ACK, or unless a D-SACK says that nothing was lost. They reduce the window.",
    ),
    key(
        "budget",
        Kind::Integer(1, 100),
        Value("100"),
        "Redundant bytes, at most so many per cent of the bytes on the wire within 16 round trips.",
    ),
    key(
        "charge",
        Kind::Flag,
        Value("false"),
        "Redundant bytes need room in the window too.",
    ),
    key(
        "spaced",
        Kind::Flag,
        Value("false"),
        "Only while everything written is sent and segments leave no faster than every `min_interval` on average.",
    ),
    key(
        "tfrc_bound",
        Kind::Flag,
        Value("false"),
        "Only while segments leave no faster than TFRC-SP permits at the loss seen.",
    ),
    key(
        "min_loss",
        Kind::Flag,
        Value("false"),
        "Only while more than one segment in 200 was lost lately.",
    ),
];

const HALF_SECOND: Duration = Duration::from_millis(500);

/// Rules for delayed ACKs.
pub(crate) static DELAYED_ACK: KindTable = KindTable {
    tag: "kind",
    what: "rule for delayed ACKs",
    common: &[],
    kinds: &[
        KindKeys {
            name: "off",
            doc: "Every segment is acknowledged at once.",
            keys: &[],
        },
        KindKeys {
            name: "standard",
            doc: "Every second full segment, or after a time.",
            keys: &[key(
                "timeout",
                Kind::Duration(NANOSECOND, HALF_SECOND),
                Value("\"100 ms\""),
                "Longest delay.",
            )],
        },
        KindKeys {
            name: "linux",
            doc: "Adaptive, after a phase of immediate ACKs.",
            keys: &[
                key(
                    "min",
                    Kind::Duration(NANOSECOND, HALF_SECOND),
                    Value("\"40 ms\""),
                    "Floor of the delay.",
                ),
                key(
                    "max",
                    Kind::Duration(NANOSECOND, HALF_SECOND),
                    Value("\"200 ms\""),
                    "Cap of the delay.",
                ),
                key(
                    "quick_acks",
                    Kind::Integer(0, 255),
                    Value("16"),
                    "Segments acknowledged at once at the start and after idle.",
                ),
            ],
        },
    ],
};
