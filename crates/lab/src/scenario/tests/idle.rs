//! Keys that would do nothing.

use super::{refusal, resolved};
use crate::scenario::{Scenario, Setting};
use fleetfoot_sim::spec::TrafficKind;

fn line(traffic: &str) -> String {
    format!(
        "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n[[traffic]]\nname = \"some\"\n{traffic}\n"
    )
}

const ARRIVALS: &str = "arrivals = { dist = \"poisson\", rate = \"1 per second\" }";

#[test]
fn keys_that_do_nothing_are_refused_where_they_stand() {
    let transfer = format!("kind = \"transfer\"\nsize = \"10 kB\"\n{ARRIVALS}");
    let raw = format!("kind = \"raw\"\n{ARRIVALS}");
    let streams = format!("kind = \"tfrc\"\nsize = \"10 kB\"\n{ARRIVALS}");
    let call = "kind = \"video-call\"";
    let spacing = "start_spacing = \"3 s\"";
    let reno = "tcp = { congestion_control = \"reno\" }";
    for (traffic, idle, key) in [
        (&*transfer, spacing, "start_spacing"),
        ("kind = \"ping\"", spacing, "start_spacing"),
        ("kind = \"dns\"", spacing, "start_spacing"),
        (&*raw, spacing, "start_spacing"),
        (&*streams, spacing, "start_spacing"),
        (call, "key_frame = \"100 kB\"", "key_frame"),
        ("kind = \"ping\"", reno, "tcp.congestion_control"),
        (
            "kind = \"cbr\"\nrate = \"1 Mbit/s\"",
            reno,
            "tcp.congestion_control",
        ),
        (call, "tcp.ecn = true", "tcp.ecn"),
        ("kind = \"dns\"", "tcp.timestamps = false", "tcp.timestamps"),
        (&*raw, reno, "tcp.congestion_control"),
        (&*streams, reno, "tcp.congestion_control"),
    ] {
        resolved(&line(traffic), &Setting::none());
        let error = refusal(&line(&format!("{traffic}\n{idle}")));
        assert_eq!(*error.key, *format!("traffic.some.{key}"), "{error}");
        assert!(error.message.contains("has no effect"), "{error}");
        assert_eq!(error.line as usize, 6 + traffic.lines().count(), "{error}");
    }
}

#[test]
fn keys_that_may_act_stay() {
    for traffic in [
        "kind = \"video-call\"\nkey_frame = \"100 kB\"\nkey_frame_every = 30",
        "kind = \"video-call\"\ntcp.host_coalesce = \"1 ms\"\nstart_spacing = \"1 s\"",
        "kind = \"tfrc\"\ncount = 3\nstart_spacing = \"1 s\"",
        "kind = \"bulk\"\nstart_spacing = \"1 s\"\ntcp.congestion_control = \"reno\"",
    ] {
        resolved(&line(traffic), &Setting::none());
    }
    // A variant may give the key an effect.
    let call = line("kind = \"video-call\"\nkey_frame = \"100 kB\"");
    resolved(
        &format!("{call}[[variant]]\nname = \"keys\"\nset = {{ \"traffic.some.key_frame_every\" = 30 }}\n"),
        &Setting::none(),
    );
    // Traffic of another kind keeps what every kind has.
    let spaced = line("kind = \"bulk\"\nstart_spacing = \"1 s\"");
    let scenario = Scenario::parse("line.toml", &spaced).unwrap_or_else(|error| panic!("{error}"));
    let set = Setting::none().with("traffic.some.kind", "ping");
    scenario.resolve(&set).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_a_kind_is_said_to_have_it_has() {
    // Of traffic that examples do not need files for.
    for (traffic, kind) in [
        (
            format!("kind = \"transfer\"\nsize = \"10 kB\"\n{ARRIVALS}"),
            TrafficKind::Transfer,
        ),
        (String::from("kind = \"ping\""), TrafficKind::Ping),
        (String::from("kind = \"dns\""), TrafficKind::Dns),
        (format!("kind = \"raw\"\n{ARRIVALS}"), TrafficKind::Raw),
        (String::from("kind = \"bulk\""), TrafficKind::Bulk),
        (String::from("kind = \"video-call\""), TrafficKind::Video),
        (
            String::from("kind = \"incast\"\nsize = \"10 kB\""),
            TrafficKind::Incast,
        ),
    ] {
        let resolved = resolved(&line(&traffic), &Setting::none());
        let members = resolved.spec.groups[0].traffic.members(false);
        assert_eq!(kind.facts().has_members, members.is_some(), "{kind:?}");
    }
}
