//! How a congestion control is turned on, and where it can be had.

use super::endpoints::{End, How, Step};

/// Congestion control `name`.
pub(super) fn controller(name: &str, switches: &[(String, String)]) -> Step {
    let one_way = switches
        .iter()
        .any(|(key, _)| key == "congestion_control.gradient");
    let set = |module: bool, name: &str| {
        let setting = format!("net.ipv4.tcp_congestion_control={name}");
        if module {
            How::Command(format!("modprobe tcp_{name}; sysctl -w {setting}"))
        } else {
            How::Sysctl(setting)
        }
    };
    let (how, why, needs) = match name {
        "cdg" if one_way => (
            How::Proxy,
            "Senders slow down when the way there, without the way back, takes longer and longer.",
            "In no kernel. The nearest in Linux 4.2 and later is cdg by the round trip: modprobe tcp_cdg; sysctl -w net.ipv4.tcp_congestion_control=cdg.",
        ),
        "reno" => (
            set(false, name),
            "Senders speed up by a packet a round trip and halve on a loss.",
            "Any Linux.",
        ),
        "cubic" => (
            set(false, name),
            "Senders speed up along a cubic curve and slow down by three tenths on a loss.",
            "Linux 2.6.19 or later; the default.",
        ),
        "dctcp" => (
            set(true, name),
            "Senders slow down by the share of their packets that was marked. Never beside ordinary senders at the same queue: it takes their share.",
            "Linux 3.18 or later with the module tcp_dctcp, at both ends, and a queue that marks.",
        ),
        "prague" => (
            How::Proxy,
            "Senders slow down by the share of their packets that was marked and say so, which lets them wait in the short queue.",
            "In no released Linux: kernels of the L4STeam (github.com/L4STeam/linux) have it: modprobe tcp_prague; sysctl -w net.ipv4.tcp_congestion_control=prague.",
        ),
        "cdg" => (
            set(true, name),
            "Senders slow down when the round trip grows, before packets are lost.",
            "Linux 4.2 or later with the module tcp_cdg; without it, Linux 6.4 or later and Fleetfoot built with the feature bpf: fleetfoot attach cdg --default.",
        ),
        "cdg-freebsd" => (
            How::Proxy,
            "Senders slow down when the round trip grows, before packets are lost.",
            "FreeBSD: kldload cc_cdg; sysctl net.inet.tcp.cc.algorithm=cdg. The nearest in Linux 4.2 and later: modprobe tcp_cdg; sysctl -w net.ipv4.tcp_congestion_control=cdg.",
        ),
        "vegas" => (
            set(true, name),
            "Senders keep two to four packets waiting on the way and no more; beside senders that fill the queue they get little.",
            "Any Linux with the module tcp_vegas.",
        ),
        "westwood" => (
            set(true, name),
            "Senders continue after a loss from the rate that they measured, not from half of it.",
            "Any Linux with the module tcp_westwood.",
        ),
        "bbr" => (
            set(true, name),
            "Senders measure the rate of the way and send at it, whatever is lost.",
            "Linux 4.9 or later with the module tcp_bbr; before 4.13 also with the queue fq at the port that sends, which spaces the packets at the rate that BBR has found: tc qdisc replace dev eth0 root fq (later kernels do it in TCP itself).",
        ),
        "bbr3" => (
            How::Proxy,
            "Senders measure the rate of the way and send at it, and slow down when more than two per cent is lost.",
            "In no released Linux: branch v3 of github.com/google/bbr. The nearest: modprobe tcp_bbr; sysctl -w net.ipv4.tcp_congestion_control=bbr.",
        ),
        _ => (
            How::No,
            "Senders use another congestion control.",
            "In no kernel under this name that is known here; sysctl net.ipv4.tcp_available_congestion_control lists what a host has.",
        ),
    };
    let end = if name == "dctcp" { End::Both } else { End::Senders };
    Step::new(end, how, why, needs)
}

#[cfg(test)]
mod tests {
    use super::controller;

    #[test]
    fn bbr_on_an_old_kernel_needs_the_queue_that_spaces_its_packets() {
        let needs = controller("bbr", &[]).needs;
        assert!(needs.contains("before 4.13 also with the queue fq"), "{needs}");
    }
}
