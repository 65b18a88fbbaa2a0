//! Small scripts against our stack: what the runner lets pass, what it does not, and what it says then.

use super::{Played, Rules, Verdict, run};
use crate::backend::Setup;
use crate::matching::Neutral;
use crate::parse::{Definitions, parse};
use crate::virtual_time::Virtual;
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_lab::scenario::set_switch;
use std::net::IpAddr;

const MS: u64 = 1_000_000;

/// A connection, accepted as 4, on lines 1 to 8; more lines follow from line 9.
const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
";

fn play(options: &str, lines: &str, rules: &Rules) -> Played {
    let text = format!("{options}{OPEN}{lines}");
    let script = parse(text.as_bytes(), &Definitions::default()).expect("a script");
    let setup = Setup {
        local: IpAddr::from([192, 168, 0, 1]),
        remote: IpAddr::from([192, 0, 2, 1]),
        mtu: 1500,
        mapped: false,
    };
    run(
        &script,
        &mut Virtual::new(&setup, Config::profile(Profile::Linux), set_switch),
        &setup,
        rules,
    )
}

fn passes(lines: &str) -> bool {
    let played = play("", lines, &Rules::default());
    assert_ne!(played.verdict, Verdict::Unsupported, "{}", played.reason);
    played.verdict == Verdict::Pass
}

/// Line and reason of a failure.
fn fails(lines: &str) -> (Option<u32>, String) {
    let played = play("", lines, &Rules::default());
    assert_eq!(played.verdict, Verdict::Fail, "{}", played.reason);
    (played.line, played.reason)
}

#[test]
fn a_line_says_what_differs() {
    let (line, reason) = fails("+0 write(4, ..., 500) = 500\n+0 > . 2:502(500) ack 3 <nop,nop,nop,nop>\n");
    assert_eq!(line, Some(10));
    assert_eq!(
        reason,
        "flags: expected ., seen P.; sequence number: expected 2, seen 1; acknowledgment: expected 3, seen 1; \
         options: expected <nop,nop,nop,nop>, seen <>"
    );
}

#[test]
fn what_a_line_leaves_open_is_not_compared() {
    let write = "+0 write(4, ..., 500) = 500\n";
    for line in [
        "+0 > P. 1:501(500) ack 1",
        "+0 > P. 1:501(500) ack 1 <...>",
        "+0 > P. ...(500) ack 1",
        "* > P. 1:501(500) ack 1",
        "+0 > (ttl 64) P. 1:501(500) ack 1",
        "+0 > [noecn] P. 1:501(500) ack 1",
        "+0~+.5 > P. 1:501(500) ack 1",
    ] {
        assert!(passes(&format!("{write}{line}\n")), "{line}");
    }
    for (line, wrong) in [
        (
            "+0 > (ttl 63) P. 1:501(500) ack 1",
            "time to live: expected 63, seen 64",
        ),
        (
            "+0 > [ect0] P. 1:501(500) ack 1",
            "ECN bits: expected ect0, seen noecn",
        ),
        (
            "+0 > [ect01] P. 1:501(500) ack 1",
            "ECN bits: expected ect01, seen noecn",
        ),
        (
            "+0 > (tos 0x4) P. 1:501(500) ack 1",
            "traffic class: expected 0x04, seen 0x00",
        ),
    ] {
        assert_eq!(
            fails(&format!("{write}{line}\n")),
            (Some(10), wrong.to_owned()),
            "{line}"
        );
    }
}

#[test]
fn several_segments_meet_one_line_unless_it_is_strict() {
    let lines = "+0 write(4, ..., 2500) = 2500\n+0 > P. 1:2501(2500) ack 1\n";
    assert!(passes(lines));
    let strict = play("--strict_segments\n", lines, &Rules::default());
    // One line more in front.
    assert_eq!((strict.verdict, strict.line), (Verdict::Fail, Some(11)));
    let (line, reason) = fails("+0 write(4, ..., 2500) = 2500\n+0 > P. 1:1501(1500) ack 1\n");
    assert_eq!(line, Some(10));
    assert_eq!(reason, "segments of 1000 and 1000 bytes where the line has 1500");
    let (_, reason) = fails("+0 write(4, ..., 2500) = 2500\n+0 > P. 1:3001(3000) ack 1\n");
    assert!(
        reason.contains("segments of unequal length") || reason.contains("payload length"),
        "{reason}"
    );
}

#[test]
fn times_have_the_larger_tolerance_of_the_two() {
    // An answer to a call, 0 ms after it; the line says later.
    let late = |by: &str| format!("+0 write(4, ..., 500) = 500\n+{by} > P. 1:501(500) ack 1\n");
    assert!(passes(&late(".004"))); // the default of 4 ms
    let (line, reason) = fails(&late(".0051"));
    assert_eq!(line, Some(10));
    assert_eq!(reason, "time: expected 0.105100, seen 0.100000");
    let with = |options: &str, by: &str| play(options, &late(by), &Rules::default()).verdict;
    assert_eq!(with("--tolerance_usecs=6000\n", ".0051"), Verdict::Pass);
    assert_eq!(
        with("--tolerance_usecs=1000\n--tolerance_percent=100\n", ".0051"),
        Verdict::Pass
    );
    assert_eq!(
        with("--tolerance_usecs=1000\n--tolerance_percent=10\n", ".0051"),
        Verdict::Fail
    );
    // 12.5 % of the distance to the line before: an acknowledgment delayed by 40 ms that is expected after 45.
    let delayed = |by: &str| format!("+.1 < P. 1:101(100) ack 1 win 257\n{by} > . 1:1(0) ack 101\n");
    assert!(passes(&delayed("+0")));
    let rules = Rules {
        tolerance: Some(0),
        ..Rules::default()
    };
    let strictly = play("", &late(".000001"), &rules);
    assert_eq!((strictly.verdict, strictly.line), (Verdict::Fail, Some(10)));
    assert_eq!(play("", &late("0"), &rules).verdict, Verdict::Pass);
    let rules = Rules {
        granted: 90 * MS,
        ..Rules::default()
    };
    assert_eq!(play("", &late(".09"), &rules).verdict, Verdict::Pass);
    assert_eq!(play("", &late(".091"), &rules).verdict, Verdict::Fail);
}

#[test]
fn a_tick_is_granted_to_timers_only() {
    // The retransmission timer: 1 s is not known yet, RTT 100 ms gives 300 ms.
    let lines = |at: &str| {
        format!("+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1\n{at} > P. 1:501(500) ack 1\n")
    };
    let probe = play("", &lines("*"), &Rules::default());
    assert_eq!(probe.verdict, Verdict::Pass, "{}", probe.reason);
    let rules = Rules {
        tolerance: Some(0),
        ..Rules::default()
    };
    let strictly = play("", &lines("+2"), &rules);
    assert_eq!(strictly.verdict, Verdict::Fail);
    // What it was sent at, from the reason: "time: expected 2.100000, seen S".
    let seen = strictly.reason.rsplit(' ').next().unwrap_or_default();
    let seen: f64 = seen.parse().expect("a time");
    let after = seen - 0.1;
    let says = |after: f64| lines(&format!("+{after:.6}"));
    let option = "--tolerance_usecs=1000\n--tolerance_percent=0\n";
    let verdict = |after: f64| play(option, &says(after), &Rules::default()).verdict;
    assert_eq!(verdict(after), Verdict::Pass);
    assert_eq!(verdict(after + 0.0109), Verdict::Pass);
    assert_eq!(verdict(after + 0.0111), Verdict::Fail);
    assert_eq!(verdict(after - 0.0111), Verdict::Fail);
}

#[test]
fn extra_segments_fail_if_so_asked() {
    let lines = "+0 write(4, ..., 500) = 500\n";
    let lenient = play("", lines, &Rules::default());
    assert_eq!(lenient.verdict, Verdict::Pass);
    assert_eq!(lenient.extra.len(), 1);
    let rules = Rules {
        no_extra: true,
        ..Rules::default()
    };
    let strict = play("", lines, &rules);
    assert_eq!(strict.verdict, Verdict::Fail);
    assert!(
        strict
            .reason
            .starts_with("1 segments that no line expects: 0.100000 > P. 1:501(500) ack 1"),
        "{}",
        strict.reason
    );
    assert_eq!(play("", "", &rules).verdict, Verdict::Pass);
}

#[test]
fn calls_say_what_they_returned() {
    assert_eq!(
        fails("+0 write(4, ..., 500) = 499\n"),
        (Some(9), "`write` returned 500; expected 499".to_owned())
    );
    assert_eq!(
        fails("+0 read(9, ..., 500) = -1 EPIPE (Broken pipe)\n"),
        (Some(9), "`read` returned -1 EBADF; expected -1 EPIPE".to_owned())
    );
    assert_eq!(
        fails("+0 read(4, ..., 500) = 0\n"),
        (
            Some(9),
            "`read` blocks; the script says that it returns at once".to_owned()
        )
    );
    assert_eq!(
        fails("+0 ioctl(4, SIOCINQ, [5]) = 0\n"),
        (Some(9), "`ioctl` gave [0]; expected [5]".to_owned())
    );
    assert!(passes(
        "+0...0.2 read(4, ..., 500) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n"
    ));
    let (line, reason) = fails("+0...0.5 read(4, ..., 500) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n");
    assert_eq!(line, Some(9));
    assert!(
        reason.starts_with("`read` returned at 0.300000; expected at "),
        "{reason}"
    );
}

#[test]
fn assertions_say_what_they_saw() {
    assert!(passes("+0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%\n"));
    let (line, reason) = fails("+0 %{\nassert tcpi_snd_cwnd == 11\n}%\n");
    assert_eq!(line, Some(9));
    assert_eq!(
        reason,
        "assertion failed: assert tcpi_snd_cwnd == 11 with tcpi_snd_cwnd = 10"
    );
}

#[test]
fn the_neutral_mode_looks_away_where_it_says() {
    let rules = |options: bool| Rules {
        neutral: Some(Neutral {
            options,
            delayed_from_start: false,
        }),
        ..Rules::default()
    };
    let window = "+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1 win 1\n";
    assert_eq!(play("", window, &rules(true)).verdict, Verdict::Pass);
    assert_eq!(play("", window, &Rules::default()).verdict, Verdict::Fail);
    let options = "+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1 <nop,nop,nop,nop>\n";
    assert_eq!(play("", options, &rules(false)).verdict, Verdict::Pass);
    assert_eq!(play("", options, &rules(true)).verdict, Verdict::Fail);
}

#[test]
fn what_is_not_known_is_named_with_its_line() {
    for (lines, reason) in [
        ("+0 mmap(4) = 0\n", "the system call `mmap`"),
        ("+0 `reboot`\n", "the command `reboot`"),
        ("+0 sysctl(NO_SUCH_WORD) = 0\n", "the system call `sysctl`"),
        (
            "+0 read(4, ..., NO_SUCH_WORD) = 0\n",
            "the constant `NO_SUCH_WORD` in `read`",
        ),
    ] {
        let played = play("", lines, &Rules::default());
        assert_eq!(
            (played.verdict, played.line, played.reason.as_str()),
            (Verdict::Unsupported, Some(9), reason)
        );
    }
    let played = play("--no_such_option=1\n", "", &Rules::default());
    assert_eq!((played.verdict, played.line), (Verdict::Unsupported, Some(1)));
    assert_eq!(played.reason, "the option `--no_such_option=1`");
}

#[test]
fn words_defined_outside_are_replaced() {
    let text = format!(
        "{OPEN}+0 < icmp unreachable CODE [1:1(0)]\n+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [0], [4]) = 0\n"
    );
    let mut definitions = Definitions::default();
    definitions.define("CODE", "host_unreachable");
    assert!(parse(text.as_bytes(), &definitions).is_ok());
    definitions.define("CODE", "nonsense");
    let error = parse(text.as_bytes(), &definitions).expect_err("no such code");
    assert_eq!(error.line, 9);
    assert!(error.message.contains("`nonsense`"), "{}", error.message);
}
