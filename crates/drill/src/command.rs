//! Back-quoted commands: what they would do to a machine, as [`Setting`]s and questions.
//!
//! Nothing is executed. A command that is not known makes the script unsupported.

use super::backend::{ConnectionState, Setting};

/// What a piece of a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Change the machine.
    Set(Setting),
    /// The number of sockets that have to be in a state.
    Count(ConnectionState, usize),
    /// Counters of the machine count from here on (`nstat` shows what they grew by since it last did).
    ForgetCounters,
    /// This counter of the machine has grown.
    Grown(String),
    /// Whatever follows a filter that only looks.
    Nothing,
}

/// What a command asks for.
///
/// # Errors
/// The piece that is not known.
pub(super) fn interpret(text: &str) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        for piece in line.split(';').flat_map(|piece| piece.split("&&")) {
            let words = words(piece)?;
            if !words.is_empty() {
                one(&words, &mut requests).map_err(|()| format!("the command `{}`", words.join(" ")))?;
            }
        }
    }
    Ok(requests)
}

/// Cuts a command line into words; quotes hold words together, `#` begins a comment.
fn words(piece: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in piece.chars() {
        match quote {
            Some(mark) if letter == mark => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter == '#' && word.is_none() => break,
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(format!("the command `{}` without a closing quote", piece.trim()));
    }
    words.extend(word);
    Ok(words)
}

fn one(words: &[String], requests: &mut Vec<Request>) -> Result<(), ()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = words[0].rsplit('/').next().unwrap_or_default();
    match program {
        "defaults.sh" => {
            for (name, value) in DEFAULTS {
                requests.push(sysctl(name, value));
            }
        }
        "set_sysctls.py" => {
            for assignment in &words[1..] {
                requests.push(assigned(assignment)?);
            }
        }
        "sysctl" => {
            let mut any = false;
            for word in &words[1..] {
                if !word.starts_with('-') {
                    requests.push(assigned(word)?);
                    any = true;
                }
            }
            if !any {
                return Err(());
            }
        }
        "echo" => match words[1..] {
            [value, ">", path] => requests.push(assigned(&format!("{path}={value}"))?),
            _ => return Err(()),
        },
        "ip" => requests.push(route(&words)?),
        "tc" => requests.push(link_queue(&words)?),
        "sockstat" => requests.push(count(&words)?),
        // They undo what was set, drop what is over, show what nobody looks at, or set what this stack never does.
        "tcpdrop" | "ethtool" | "true" => requests.push(Request::Nothing),
        "nstat" => requests.push(match words[1..] {
            [] | [">", "/dev/null"] => Request::ForgetCounters,
            ["|", "grep", counter] | ["|", "grep", counter, ">", "/dev/null"] => {
                Request::Grown(counter.to_owned())
            }
            _ => return Err(()),
        }),
        name if name.starts_with("sysctl_restore_") => requests.push(Request::Nothing),
        _ => return Err(()),
    }
    Ok(())
}

fn sysctl(name: &str, value: &str) -> Request {
    Request::Set(Setting::Sysctl {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

/// `net.ipv4.x=v`, `/proc/sys/net/ipv4/x=v`, `/sys/module/m/parameters/p=v`.
fn assigned(assignment: &str) -> Result<Request, ()> {
    let (name, value) = assignment.split_once('=').ok_or(())?;
    if let Some(path) = name.strip_prefix("/sys/module/") {
        let (module, parameter) = path.split_once("/parameters/").ok_or(())?;
        return Ok(Request::Set(Setting::Module {
            module: module.to_owned(),
            name: parameter.to_owned(),
            value: value.to_owned(),
        }));
    }
    let name = match name.strip_prefix("/proc/sys/") {
        Some(path) => path.replace('/', "."),
        None if name.starts_with('/') => return Err(()),
        None => name.to_owned(),
    };
    Ok(sysctl(&name, value))
}

/// `ip route change ADDRESS via GATEWAY dev DEVICE [advmss N] [mtu [lock] N] [initcwnd N]`, `ip tcp_metrics flush`.
fn route(words: &[&str]) -> Result<Request, ()> {
    match words[1..] {
        ["tcp_metrics", "flush", ..] => return Ok(Request::Set(Setting::ForgetPeers)),
        ["route", "change" | "replace", ..] => {}
        _ => return Err(()),
    }
    let (mut advmss, mut mtu, mut lock, mut initial_window, mut rto_min_ms) = (None, None, false, None, None);
    let mut rest = words.get(4..).unwrap_or_default().iter();
    while let Some(word) = rest.next() {
        let mut number = || rest.next().and_then(|word| word.parse().ok()).ok_or(());
        match *word {
            "via" | "dev" | "src" | "proto" => {
                rest.next();
            }
            "advmss" => advmss = Some(number()?),
            "initcwnd" => initial_window = Some(number()?),
            "mtu" => {
                let next = *rest.next().ok_or(())?;
                lock = next == "lock";
                let value = if lock { *rest.next().ok_or(())? } else { next };
                mtu = Some(value.parse().map_err(|_| ())?);
            }
            "rto_min" => {
                let value = rest.next().ok_or(())?;
                rto_min_ms = Some(value.trim_end_matches("ms").parse().map_err(|_| ())?);
            }
            _ => return Err(()),
        }
    }
    Ok(Request::Set(Setting::Route {
        advmss,
        mtu,
        lock,
        initial_window,
        rto_min_ms,
    }))
}

/// `tc qdisc replace dev DEVICE root pfifo limit N`.
fn link_queue(words: &[&str]) -> Result<Request, ()> {
    match words[1..] {
        [
            "qdisc",
            "replace" | "add" | "change",
            "dev",
            _,
            "root",
            "pfifo",
            "limit",
            packets,
        ] => {
            let packets = packets.parse().map_err(|_| ())?;
            Ok(Request::Set(Setting::LinkQueue { packets }))
        }
        ["qdisc", "replace" | "add" | "change", "dev", _, "root", "pfifo"] => {
            Ok(Request::Set(Setting::LinkQueue { packets: 1000 }))
        }
        _ => Err(()),
    }
}

/// `sockstat ... | grep -c STATE | grep N`.
fn count(words: &[&str]) -> Result<Request, ()> {
    let state = words
        .iter()
        .find_map(|word| match *word {
            "SYN_RCVD" => Some(ConnectionState::SynReceived),
            "TIME_WAIT" => Some(ConnectionState::TimeWait),
            _ => None,
        })
        .ok_or(())?;
    let wanted = words.last().and_then(|word| word.parse().ok()).ok_or(())?;
    Ok(Request::Count(state, wanted))
}

/// What the script `defaults.sh` beside the public scripts sets.
pub(super) const DEFAULTS: [(&str, &str); 30] = [
    ("net.core.rmem_max", "4194304"),
    ("net.core.wmem_max", "4194304"),
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_fack", "0"),
    ("net.ipv4.tcp_reordering", "3"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_recovery", "1"),
    ("net.ipv4.tcp_early_retrans", "4"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_frto", "2"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_keepalive_time", "7200"),
    ("net.ipv4.tcp_keepalive_intvl", "75"),
    ("net.ipv4.tcp_keepalive_probes", "9"),
    ("net.ipv4.tcp_pacing_ss_ratio", "200"),
    ("net.ipv4.tcp_pacing_ca_ratio", "120"),
    ("net.ipv4.tcp_tso_win_divisor", "3"),
    ("net.ipv4.tcp_notsent_lowat", "4294967295"),
    ("net.ipv4.tcp_fastopen", "0x70403"),
    ("net.ipv4.tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"),
    ("net.ipv4.tcp_syncookies", "1"),
    ("net.ipv4.tcp_mtu_probing", "0"),
    ("net.ipv4.tcp_syn_linear_timeouts", "0"),
];

/// What the script `defaults.sh` of the Linux kernel's own tests differs in: it leaves this at the kernel's default (6.5).
pub(super) const KERNEL_TESTS: (&str, &str) = ("net.ipv4.tcp_syn_linear_timeouts", "4");

/// What an old Linux (3.x) differs in, for scripts that expect one and set nothing.
pub(super) const OLD_LINUX: [(&str, &str); 6] = [
    ("net.ipv4.tcp_rmem", "4096 131072 3145728"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_recovery", "0"), // RACK came with 4.4; early retransmit (RFC 5827) was there until then
    ("net.ipv4.tcp_early_retrans", "3"),
];

/// Segments that the first receive window of Linux 2.6.38 to 4.19 held.
pub(super) const OLD_FIRST_WINDOW: u32 = 20;

#[cfg(test)]
mod tests {
    use super::{Request, interpret};
    use crate::backend::{ConnectionState, Setting};

    fn set(name: &str, value: &str) -> Request {
        super::sysctl(name, value)
    }

    #[test]
    fn sysctls_of_all_forms() {
        let requests = interpret(
            "./set_sysctls.py /proc/sys/net/ipv4/tcp_a=1 \\\n  /proc/sys/net/ipv4/tcp_b=\"1 2 3\"\nsysctl -q net.ipv4.tcp_c=2 # note\n\
             sysctl -w net.x=3; echo 4 > /sys/module/tcp_cubic/parameters/hystart",
        );
        assert_eq!(
            requests,
            Ok(vec![
                set("net.ipv4.tcp_a", "1"),
                set("net.ipv4.tcp_b", "1 2 3"),
                set("net.ipv4.tcp_c", "2"),
                set("net.x", "3"),
                Request::Set(Setting::Module {
                    module: "tcp_cubic".into(),
                    name: "hystart".into(),
                    value: "4".into()
                }),
            ])
        );
        assert!(interpret("../../common/defaults.sh").is_ok_and(|requests| requests.len() > 20));
    }

    #[test]
    fn routes_queues_and_questions() {
        assert_eq!(
            interpret(
                "ip route change 192.0.2.1 via 192.168.0.2 dev tun0 advmss 600 mtu lock 640 initcwnd 11"
            ),
            Ok(vec![Request::Set(Setting::Route {
                advmss: Some(600),
                mtu: Some(640),
                lock: true,
                initial_window: Some(11),
                rto_min_ms: None,
            })])
        );
        assert_eq!(
            interpret("tc qdisc replace dev tun0 root pfifo limit 0"),
            Ok(vec![Request::Set(Setting::LinkQueue { packets: 0 })])
        );
        assert_eq!(
            interpret("sockstat -4 -P tcp -s | grep packetdril | grep -c TIME_WAIT | grep 1"),
            Ok(vec![Request::Count(ConnectionState::TimeWait, 1)])
        );
    }

    #[test]
    fn counters_are_asked_for() {
        assert_eq!(interpret("nstat > /dev/null"), Ok(vec![Request::ForgetCounters]));
        assert_eq!(
            interpret("nstat | grep TcpExtX > /dev/null"),
            Ok(vec![Request::Grown("TcpExtX".into())])
        );
        assert_eq!(interpret("nstat -a x"), Err("the command `nstat -a x`".into()));
    }

    #[test]
    fn what_is_not_known_is_named() {
        assert_eq!(interpret("true; rm -rf x"), Err("the command `rm -rf x`".into()));
        assert_eq!(interpret("ip"), Err("the command `ip`".into()));
        assert_eq!(interpret("sysctl -q"), Err("the command `sysctl -q`".into()));
        assert_eq!(
            interpret("echo 'a"),
            Err("the command `echo 'a` without a closing quote".into())
        );
    }
}
