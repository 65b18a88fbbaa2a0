//! The parser: every form once, and what is said about mistakes.

use super::{Definitions, parse};
use crate::ast::{
    Action, Argument, Body, Direction, IcmpKind, OptionList, PacketLine, Quoted, Script, SeqForm, TcpLine,
    TcpOption, Time, Tos,
};

fn script(text: &str) -> Script {
    parse(text.as_bytes(), &Definitions::default()).expect("the script is well formed")
}

fn event(text: &str) -> Action {
    script(text).events.remove(0).action
}

fn packet(text: &str) -> PacketLine {
    match event(&format!("0 {text}")) {
        Action::Packet(line) => line,
        other => panic!("not a packet: {other:?}"),
    }
}

fn tcp(text: &str) -> TcpLine {
    match packet(text).body {
        Body::Tcp(line) => line,
        other => panic!("not a segment: {other:?}"),
    }
}

fn mistake(text: &str) -> String {
    parse(text.as_bytes(), &Definitions::default())
        .expect_err("the script has a mistake")
        .to_string()
}

#[test]
fn times_of_all_forms() {
    let script =
        script("0 `a`\n+.1 `b`\n* `c`\n1.0~1.2 `d`\n+0~+.04 `e`\n+.01...0.020 close(3) = 0\n0.000000001 `f`");
    let times: Vec<_> = script
        .events
        .iter()
        .map(|event| (event.time, event.end))
        .collect();
    assert_eq!(
        times,
        [
            (Time::Absolute(0), None),
            (Time::Relative(100_000_000), None),
            (Time::Any, None),
            (Time::AbsoluteRange(1_000_000_000, 1_200_000_000), None),
            (Time::RelativeRange(0, 40_000_000), None),
            (Time::Relative(10_000_000), Some(20_000_000)),
            (Time::Absolute(1), None),
        ]
    );
    assert_eq!(script.events[6].line, 7);
}

#[test]
fn commands_before_and_after() {
    let script = script(
        "--tolerance_usecs=10000\n--strict_segments\n// note\n`first\n line`\n0 /* x */ `second`\n`third`\n",
    );
    assert_eq!(
        script.option("tolerance_usecs").and_then(|o| o.value.as_deref()),
        Some("10000")
    );
    assert!(
        script
            .option("strict_segments")
            .is_some_and(|o| o.value.is_none())
    );
    assert_eq!(
        script.init.map(|command| command.text),
        Some("first\n line".to_owned())
    );
    assert_eq!(script.cleanup.map(|command| command.line), Some(7));
}

#[test]
fn a_segment_with_everything() {
    let line = packet(
        "> [ect01, ttl 64] 8080 > 1234 FP.A 1:1001(1000) ack 4294967295 win 10 urg 3 <nop,nop,TS val 5 ecr 0x10>",
    );
    assert_eq!(line.direction, Direction::Outbound);
    assert_eq!(
        (line.ip.tos, line.ip.ttl, line.ports),
        (Tos::AnyEct, Some(64), Some((8080, 1234)))
    );
    let Body::Tcp(segment) = line.body else {
        panic!("not a segment")
    };
    assert_eq!(segment.flags, 1 | 8 | 16 | 256);
    assert_eq!((segment.seq, segment.len, segment.ack), (1, 1000, Some(u32::MAX)));
    assert_eq!((segment.window, segment.urgent), (Some(10), 3));
    assert_eq!(
        segment.options,
        OptionList::These(vec![
            TcpOption::Nop,
            TcpOption::Nop,
            TcpOption::Timestamps { val: 5, ecr: 16 }
        ])
    );
}

#[test]
fn flags_of_all_forms() {
    assert_eq!(tcp("> - 1:1(0)").flags, 0);
    assert_eq!(tcp("> S7 0:0(0) <...>").flags, 2 | 0x1c0);
    assert_eq!(tcp("> .5 0:0(0) <...>").flags, 16 | 0x140);
    assert_eq!(tcp("> SEW 0:0(0)").flags, 2 | 64 | 128);
    assert_eq!(tcp("> R. 0:0(0)! ack 1").seq_form, SeqForm::Absolute);
    assert_eq!(tcp("> S. ...(0) ack 1").seq_form, SeqForm::Unsaid);
    assert_eq!(tcp("> S 0:0(0) <...>").options, OptionList::Any);
}

#[test]
fn tcp_options_of_all_kinds() {
    let line = tcp(
        "< S 0:0(0) win 1 <mss 1460,eol,wscale 8,sackOK,sack 1:2 3:4,FO,FO abcd,FOEXP TFO_COOKIE,md5 00,ECN e0b 1 ceb 2>",
    );
    let OptionList::These(options) = line.options else {
        panic!("no options")
    };
    assert_eq!(options.len(), 10);
    assert_eq!(options[4], TcpOption::Sack(vec![(1, 2), (3, 4)]));
    assert_eq!(options[5], TcpOption::FastOpen(vec![]));
    assert_eq!(options[6], TcpOption::FastOpen(vec![0xab, 0xcd]));
    let TcpOption::FastOpenExperimental(cookie) = &options[7] else {
        panic!("no cookie")
    };
    assert_eq!(cookie.len(), 8); // the word is defined
}

#[test]
fn icmp_of_all_forms() {
    let icmp = |text| match packet(text).body {
        Body::Icmp(line) => line,
        other => panic!("not ICMP: {other:?}"),
    };
    let old = icmp("< [1:1461(1460)] icmp unreachable frag_needed mtu 1200");
    let new = icmp("< icmp unreachable frag_needed mtu 1200 [1:1461(1460)]");
    assert_eq!(old, new);
    assert_eq!(
        (old.kind, old.code, old.mtu),
        (IcmpKind::Named(Some(3), Some(1)), 4, Some(1200))
    );
    assert_eq!(old.quoted, Quoted::Tcp { seq: 1, len: 1460 });
    assert_eq!(icmp("< icmp type_255 code_3").kind, IcmpKind::Number(255));
    assert_eq!(icmp("< icmp echo_request\n+0 `x`").code, 0);
    assert_eq!(packet("> udp(1400)").body, Body::Udp(1400));
}

#[test]
fn calls_of_all_forms() {
    let call = |text: &str| match event(&format!("0 {text}")) {
        Action::Call(line) => line,
        other => panic!("not a call: {other:?}"),
    };
    let poll = call("poll([{fd=3,\n events=POLLIN|POLLOUT,\n revents=POLLOUT}], 1, 100) = 1");
    assert_eq!(poll.arguments.len(), 3);
    assert_eq!(
        poll.arguments[0].to_string(),
        "[{fd=3, events=POLLIN|POLLOUT, revents=POLLOUT}]"
    );
    let failed = call("write (4, ..., 100) = -1 EPIPE(Broken Pipe)");
    assert_eq!(
        (failed.result, failed.errno.as_deref()),
        (Some(-1), Some("EPIPE"))
    );
    assert_eq!(failed.arguments[1], Argument::Any);
    assert_eq!(call("fcntl(3, F_GETFL) = 0x02 (flags O_RDWR)").result, Some(2));
    assert_eq!(call("socket(..., SOCK_STREAM, 0) = ...").result, None);
    let message =
        call("sendmsg(3, {msg_name(...)=...,\n msg_iov(2)=[{..., 5},{...,6}],\n msg_flags=0}, 0) = 11");
    assert_eq!(
        message.arguments[1].to_string(),
        "{msg_name=..., msg_iov=[{..., 5}, {..., 6}], msg_flags=0}"
    );
    assert_eq!(
        call("setsockopt(3, SOL_TCP, 1, \"cubic\", 5) = 0").arguments[3],
        Argument::Text("cubic".to_owned())
    );
    let address = call(
        "connect(3, {sa_family=AF_INET, sin_port=htons(8080), sin_addr=inet_addr(\"192.0.2.1\")}, 16) = 0",
    );
    assert_eq!(
        address.arguments[1].to_string(),
        "{sa_family=AF_INET, sin_port=8080, sin_addr=\"192.0.2.1\"}"
    );
}

#[test]
fn words_are_replaced_where_they_are_words() {
    let script = script("--define WIN=77\n0 < . 1:1(0) ack 1 win WIN\n+0 `WIN`\n+0 %{ WIN }%");
    let Action::Packet(PacketLine {
        body: Body::Tcp(line),
        ..
    }) = &script.events[0].action
    else {
        panic!("no segment")
    };
    assert_eq!(line.window, Some(77));
    assert_eq!(script.events[1].action, Action::Command("WIN".to_owned()));
    assert_eq!(script.events[2].action, Action::Code(" WIN ".to_owned()));
}

#[test]
fn lines_count_if_the_word_is_defined() {
    let text = "--define THERE=1\n0 `a`\n#ifdef THERE\n+0 `b`\n#else\n+0 `c`\n#endif\n#ifdef ABSENT\n> (\n#endif\n+0 `d`\n";
    let script = script(text);
    let lines: Vec<_> = script.events.iter().map(|event| event.line).collect();
    assert_eq!(lines, [2, 4, 11]);
    assert!(mistake("0 `a`\n#endif\n").starts_with("line 2, column 1: expected #ifdef"));
}

#[test]
fn mistakes_say_where_and_what_was_expected() {
    for (text, message) in [
        (
            "",
            "line 1, column 1: expected an event, such as `0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3`, found the end of the file",
        ),
        (
            "0 > . 1:2(3)",
            "line 1, column 7: the end of a sequence range is its start and its length: expected 1:4(3)",
        ),
        (
            "0 < . 1:1(0) ack 1",
            "line 1, column 19: expected `win`: an inbound segment has to say its window, found the end of the file",
        ),
        (
            "0 > X 1:1(0)",
            "line 1, column 5: expected TCP flags (letters of FSRP.UEWA, an ACE digit, or - for none), found `X`",
        ),
        (
            "0 > . 1:1(0) <foo>",
            "line 1, column 15: expected a TCP option (nop, eol, mss, wscale, sackOK, sack, TS, FO, FOEXP, md5, ECN), found `foo>`",
        ),
        (
            "abc",
            "line 1, column 1: expected a time in seconds, such as 0.200, +.1 or *, found `abc`",
        ),
        (
            "0 close(3 = 0",
            "line 1, column 11: expected `,` or `)` after an argument, found `=`",
        ),
        (
            "0 close(3)",
            "line 1, column 11: expected `=` and the result of the call, found the end of the file",
        ),
        (
            "\n  0 `abc",
            "line 2, column 5: a command that begins here has no closing back quote",
        ),
        (
            "0 %{ abc",
            "line 1, column 3: code that begins here has no end (}%)",
        ),
        (
            "/* abc",
            "line 1, column 1: a comment that begins here has no end (*/)",
        ),
        (
            "2~1 close(3) = 0",
            "line 1, column 4: this range of times ends before it begins",
        ),
        (
            "0 < gre . 1:1(0) win 1",
            "line 1, column 5: `gre` is not supported",
        ),
        (
            "0 < icmp nothing",
            "line 1, column 10: expected an ICMP type by name, or type_N, found `nothing`",
        ),
        (
            "0...1 `x`",
            "line 1, column 10: only a system call may have an end time",
        ),
        (
            "0 < . 1:1(0) win 65536",
            "line 1, column 18: expected a window from 0 to 65535, found `65536`",
        ),
    ] {
        assert_eq!(mistake(text), message, "{text:?}");
    }
    let deep = format!("0 close({}", "[".repeat(1000));
    assert!(mistake(&deep).ends_with("arguments are nested too deeply"));
}

#[test]
fn any_cut_or_damaged_script_is_read_or_refused() {
    let whole = b"--mss=1000\n--define X=1\n`init`\n0 socket(..., SOCK_STREAM, X|2) = 3 // c\n+0~+1 > (tos 0x1) S. 0:0(0) ack 1 <mss 1460,sack 1:2,FO ab>\n*  < icmp unreachable code_3 [1:2(1)]\n+.1...2 poll([{fd=3, events=A|B}], 1, -1) = -1 EINTR (x) /* y */\n+0 %{ assert a == 1 }%\n`end`";
    for cut in 0..whole.len() {
        let _ = parse(&whole[..cut], &Definitions::default());
        let _ = parse(&whole[cut..], &Definitions::default());
        for byte in [0, b'(', b'[', b'{', b'<', b'"', b'`', b'.', b'-', 0xff] {
            let mut damaged = whole.to_vec();
            damaged[cut] = byte;
            let _ = parse(&damaged, &Definitions::default());
        }
    }
}
