//! The lines of `tc` that set a shaper up: cake by itself, others below a class of HTB; or a queue alone, at a port.
//!
//! Whatever queue of one's own was there goes first: `tc qdisc replace` changes one of the same kind (tc_modify_qdisc), which keeps what an
//! earlier command told it and this one does not mention.

use super::line::{Framing, tc_rate};
use super::queues::Discipline;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::LinkSpec;

/// A shaper for what leaves (`out`) or arrives: cake by itself, others below a class of HTB. The last line is the shaper. A tree of HTB
/// of which the kernel lacks a part is taken back: the port gets the queue that it has by default, not a shaper with a plain queue.
pub(super) fn shaper(
    arguments: &str,
    discipline: &Discipline,
    framing: &Framing,
    link: &LinkSpec,
    rate: Rate,
    out: bool,
) -> Vec<String> {
    let cake = discipline.shapes || arguments.starts_with("cake");
    if cake {
        let shaped = arguments.replacen(
            "cake",
            &format!("cake bandwidth {} {}", tc_rate(rate), framing.cake),
            1,
        );
        return vec![if out {
            at_root("WAN", &format!("{shaped} nat"))
        } else {
            arrivals(&format!("tc qdisc replace dev $IFB root {shaped} nat ingress"))
        }];
    }
    if out {
        let tree = htb("$WAN", arguments, framing, link, rate);
        return vec![
            String::from("WAN=eth0; LAN=eth1; ethtool -K $WAN tso off gso off; ethtool -K $LAN gro off"),
            format!(
                "WAN=eth0; tc qdisc del dev $WAN root 2>/dev/null; {tree} || {{ tc qdisc del dev $WAN root 2>/dev/null; false; }}"
            ),
        ];
    }
    vec![
        String::from("WAN=eth0; ethtool -K $WAN gro off"),
        arrivals(&htb("$IFB", arguments, framing, link, rate)),
    ]
}

/// One class of HTB at the rate with the discipline in it. The table of sizes adds what the line does to the 14 bytes of
/// Ethernet that are counted already (tc-stab(8)); of PTM's 65 bytes 64 carry packets.
fn htb(device: &str, arguments: &str, framing: &Framing, link: &LinkSpec, rate: Rate) -> String {
    let beyond = framing.beyond_ethernet();
    let layer = if framing.atm { "atm" } else { "ethernet" };
    let least = if framing.least > 0 {
        format!(" mpu {}", framing.least)
    } else {
        String::new()
    };
    let rate = framing.carried(rate);
    let packet = u64::from(link.mtu) + 14;
    // A millisecond of the rate, and at least one packet with its cells and headers.
    let burst = (rate.bps() / 8000).max(packet + packet / 8 + 48);
    let written = tc_rate(rate);
    format!(
        "tc qdisc add dev {device} root handle 1: stab overhead {beyond}{least} linklayer {layer} htb default 1 && tc class add dev {device} parent 1: classid 1:1 htb rate {written} burst {burst} cburst {burst} quantum {packet} && tc qdisc add dev {device} parent 1:1 handle 10: {arguments}"
    )
}

/// Sends what arrives through a device of its own, on which `queue` is set up. Where a step fails, the line takes back what it did.
pub(super) fn arrivals(queue: &str) -> String {
    format!(
        "WAN=eth0; IFB=ifb-wan; tc qdisc del dev $WAN ingress 2>/dev/null; ip link add $IFB type ifb 2>/dev/null; tc qdisc del dev $IFB root 2>/dev/null; ip link set $IFB up && {queue} && tc qdisc add dev $WAN handle ffff: ingress && tc filter add dev $WAN parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev $IFB || {{ tc qdisc del dev $WAN ingress 2>/dev/null; ip link del $IFB 2>/dev/null; false; }}"
    )
}

/// At the root of a port.
pub(super) fn direct(discipline: &Discipline) -> Option<String> {
    let arguments = discipline.arguments.as_ref()?;
    Some(at_root("DEV", arguments))
}

pub(super) fn direct_nearest(discipline: &Discipline) -> Option<String> {
    let arguments = discipline.nearest.as_ref()?;
    Some(at_root("DEV", arguments))
}

/// `queue` at the root of eth0, which `variable` of the shell names.
pub(super) fn at_root(variable: &str, queue: &str) -> String {
    format!(
        "{variable}=eth0; tc qdisc del dev ${variable} root 2>/dev/null; tc qdisc replace dev ${variable} root {queue}"
    )
}
