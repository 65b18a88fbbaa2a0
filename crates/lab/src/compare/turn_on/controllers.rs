//! How a congestion control is turned on, and where it can be had.

mod parameters;

use super::endpoints::{End, How, Step};
use fleetfoot_core::parameter::{Value, Values};
use parameters::Parameters;

/// Congestion control `name` with these values of its parameters, where any is not the default.
pub(super) fn controller(name: &str, values: Option<&Values>) -> Step {
    let one_way = values.is_some_and(|values| {
        let known = values.table().iter().any(|own| own.name == "gradient");
        known && values.value("gradient") == Value::Choice("one-way")
    });
    let parameters = Parameters::of(name, values);
    let set = |module: bool, name: &str| {
        let setting = format!("net.ipv4.tcp_congestion_control={name}");
        if !parameters.are_taken() {
            How::Proxy
        } else if module || !parameters.is_empty() {
            let load = if module {
                format!("modprobe tcp_{name}{}; ", parameters.at_load())
            } else {
                String::new()
            };
            How::Command(format!("{load}{}sysctl -w {setting}", parameters.written()))
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
    Step::new(end, how, why, &format!("{needs}{}", parameters.said()))
}

#[cfg(test)]
mod tests {
    use super::super::endpoints::How;
    use super::controller;
    use fleetfoot_core::cc::AnyController;
    use fleetfoot_core::parameter::{Value, Values};

    #[test]
    fn bbr_on_an_old_kernel_needs_the_queue_that_spaces_its_packets() {
        let needs = controller("bbr", None).needs;
        assert!(needs.contains("before 4.13 also with the queue fq"), "{needs}");
    }

    /// The command and the needs of `name` with these values.
    fn of(name: &str, given: &[(&str, Value)]) -> (Option<String>, String) {
        let entry = AnyController::entry(name).expect("it is registered");
        let mut values = Values::defaults(entry.parameters);
        for &(name, value) in given {
            values.set(name, value).expect("it fits");
        }
        let step = controller(name, Some(&values));
        let command = match step.how {
            How::Command(command) => Some(command),
            How::Sysctl(setting) => Some(format!("sysctl -w {setting}")),
            How::Proxy | How::No | How::Always => None,
        };
        (command, step.needs)
    }

    #[test]
    fn parameters_are_those_of_the_kernel_s_modules() {
        let set = |name: &str| format!("sysctl -w net.ipv4.tcp_congestion_control={name}");
        let command = |name: &str, given: &[(&str, Value)]| of(name, given).0.expect("Linux has it");
        assert_eq!(command("cubic", &[]), set("cubic"));
        assert_eq!(
            command(
                "cubic",
                &[
                    ("beta", Value::Number(0.8)),
                    ("tcp_friendliness", Value::Flag(false))
                ]
            ),
            format!(
                "echo 819 > /sys/module/tcp_cubic/parameters/beta; echo 0 > /sys/module/tcp_cubic/parameters/tcp_friendliness; {}",
                set("cubic")
            )
        );
        // bic_scale / 1024 is a tenth of C, and can only be read.
        let (steep, needs) = of("cubic", &[("c", Value::Number(0.8))]);
        assert_eq!(steep, Some(set("cubic")));
        assert!(needs.contains("tcp_cubic.bic_scale=82"), "{needs}");
        assert_eq!(
            command(
                "vegas",
                &[("alpha", Value::Integer(4)), ("beta", Value::Integer(6))]
            ),
            format!(
                "modprobe tcp_vegas; echo 4 > /sys/module/tcp_vegas/parameters/alpha; echo 6 > /sys/module/tcp_vegas/parameters/beta; {}",
                set("vegas")
            )
        );
        assert_eq!(
            command(
                "dctcp",
                &[
                    ("gain", Value::Number(0.25)),
                    ("initial_alpha", Value::Number(0.5))
                ]
            ),
            format!(
                "modprobe tcp_dctcp; echo 2 > /sys/module/tcp_dctcp/parameters/dctcp_shift_g; echo 512 > /sys/module/tcp_dctcp/parameters/dctcp_alpha_on_init; {}",
                set("dctcp")
            )
        );
        assert!(
            of("dctcp", &[("gain", Value::Number(0.1))])
                .1
                .contains("gain is 0.125 in Linux, not 0.1")
        );
        let (cdg, needs) = of(
            "cdg",
            &[
                ("window", Value::Integer(4)),
                ("beta_delay", Value::Number(0.5)),
                ("hystart", Value::Choice("delay")),
                ("shadow", Value::Flag(false)),
            ],
        );
        assert_eq!(
            cdg.expect("Linux has it"),
            format!(
                "modprobe tcp_cdg window=4; echo 512 > /sys/module/tcp_cdg/parameters/backoff_beta; echo 2 > /sys/module/tcp_cdg/parameters/hystart_detect; echo 0 > /sys/module/tcp_cdg/parameters/use_shadow; {}",
                set("cdg")
            )
        );
        assert!(needs.contains("modprobe -r tcp_cdg"), "{needs}");
    }

    #[test]
    fn what_no_module_takes_is_had_by_the_proxy() {
        for (name, parameter, value) in [
            ("bbr", "startup_gain", Value::Number(2.0)),
            ("cdg", "freeze", Value::Flag(true)),
            ("cdg", "hystart", Value::Choice("hystart++")),
        ] {
            let (command, needs) = of(name, &[(parameter, value)]);
            assert_eq!(command, None, "{name}");
            let said = format!("tcp_{name} has no {parameter} = ");
            assert!(needs.contains(&said), "{needs}");
        }
    }
}
