//! Packet lines.

use super::cursor::{Cursor, ScriptError};
use crate::ast::{
    AccEcnField, Body, Direction, IcmpKind, IcmpLine, IpInfo, OptionList, PacketLine, Quoted, SeqForm,
    TcpLine, TcpOption, Tos,
};

pub(super) fn packet(cursor: &mut Cursor<'_>) -> Result<PacketLine, ScriptError> {
    let direction = if cursor.take("<") {
        Direction::Inbound
    } else {
        cursor.take(">");
        Direction::Outbound
    };
    let mut ip = IpInfo::default();
    let mut quoted = Quoted::Unsaid;
    cursor.skip()?;
    if cursor.take("[") {
        cursor.skip()?;
        if cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            quoted = quoted_tcp(cursor)?; // the older place of what an ICMP message quotes
            cursor.expect("]", "after the quoted sequence numbers")?;
        } else {
            ip = ip_info(cursor, "]")?;
        }
    } else if cursor.take("(") {
        ip = ip_info(cursor, ")")?;
    }
    cursor.skip()?;
    let word = cursor.peek_word()?;
    let body = match word.as_str() {
        "icmp" => {
            cursor.word()?;
            Body::Icmp(icmp(cursor, quoted)?)
        }
        "udp" => {
            cursor.word()?;
            Body::Udp(udp_len(cursor)?)
        }
        "ipv4" | "ipv6" | "gre" | "mpls" | "encap" | "sctp" | "udplite" | "igmp" => {
            return Err(cursor.unsupported(&format!("`{word}`")));
        }
        _ => {
            if quoted != Quoted::Unsaid {
                return Err(cursor.expected("`icmp` after quoted sequence numbers"));
            }
            let ports = ports(cursor)?;
            let line = tcp(cursor, direction)?;
            return Ok(PacketLine {
                direction,
                ip,
                ports,
                body: Body::Tcp(line),
            });
        }
    };
    Ok(PacketLine {
        direction,
        ip,
        ports: None,
        body,
    })
}

fn ip_info(cursor: &mut Cursor<'_>, close: &str) -> Result<IpInfo, ScriptError> {
    let mut info = IpInfo::default();
    loop {
        cursor.eat(",")?;
        if cursor.eat(close)? {
            return Ok(info);
        }
        let begin = cursor.pos;
        match cursor.word()?.as_str() {
            "noecn" => info.tos = Tos::Ecn(0),
            "ect1" => info.tos = Tos::Ecn(1),
            "ect0" => info.tos = Tos::Ecn(2),
            "ce" => info.tos = Tos::Ecn(3),
            "ect01" => info.tos = Tos::AnyEct,
            "tos" => info.tos = Tos::Byte(cursor.unsigned(255, "a traffic class")? as u8),
            "ttl" => info.ttl = Some(cursor.unsigned(255, "a time to live")? as u8),
            "flowlabel" => info.flow_label = Some(cursor.unsigned(0xf_ffff, "a flow label")?),
            _ => {
                cursor.pos = begin;
                return Err(cursor.expected(
                    "noecn, ect0, ect1, ect01, ce, tos, ttl or flowlabel, or the closing bracket of the IP header's part",
                ));
            }
        }
    }
}

fn ports(cursor: &mut Cursor<'_>) -> Result<Option<(u16, u16)>, ScriptError> {
    let begin = cursor.pos;
    let digits = cursor.run(|byte| byte.is_ascii_digit()).len();
    cursor.skip()?;
    let arrow = cursor.peek() == Some(b'>');
    cursor.pos = begin;
    if digits == 0 || !arrow {
        return Ok(None);
    }
    let source = cursor.unsigned(65_535, "a port")?;
    cursor.expect(">", "between the ports")?;
    let destination = cursor.unsigned(65_535, "a port")?;
    Ok(Some((source as u16, destination as u16)))
}

fn udp_len(cursor: &mut Cursor<'_>) -> Result<u32, ScriptError> {
    cursor.expect("(", "before the length of the datagram")?;
    let len = cursor.unsigned(65_507, "a datagram's length")?;
    cursor.expect(")", "after the length of the datagram")?;
    Ok(len)
}

fn tcp(cursor: &mut Cursor<'_>, direction: Direction) -> Result<TcpLine, ScriptError> {
    let mut line = TcpLine {
        flags: flags(cursor)?,
        seq_form: SeqForm::Relative,
        seq: 0,
        len: 0,
        ack: None,
        window: None,
        urgent: 0,
        options: OptionList::These(Vec::new()),
    };
    cursor.skip()?;
    if cursor.take("...") {
        line.seq_form = SeqForm::Unsaid;
        cursor.expect("(", "before the payload length")?;
        line.len = cursor.unsigned(MAX_PAYLOAD, "a payload length")?;
        cursor.expect(")", "after the payload length")?;
    } else {
        (line.seq, line.len) = sequence(cursor)?;
        if cursor.take("!") {
            line.seq_form = SeqForm::Absolute;
        }
    }
    loop {
        match cursor.peek_word()?.as_str() {
            "ack" => {
                cursor.word()?;
                line.ack = Some(cursor.unsigned(u32::MAX, "an acknowledgment number")?);
                if cursor.take("!") {
                    return Err(cursor.unsupported("an absolute acknowledgment number"));
                }
            }
            "win" => {
                cursor.word()?;
                line.window = Some(cursor.unsigned(65_535, "a window")? as u16);
            }
            "urg" => {
                cursor.word()?;
                line.urgent = cursor.unsigned(65_535, "an urgent pointer")? as u16;
            }
            _ => break,
        }
    }
    if line.window.is_none() && direction == Direction::Inbound {
        return Err(cursor.expected("`win`: an inbound segment has to say its window"));
    }
    cursor.skip()?;
    if cursor.take("<") {
        line.options = options(cursor)?;
        if direction == Direction::Inbound && line.options == OptionList::Any {
            return Err(cursor.error("an inbound segment has to say its options"));
        }
    }
    Ok(line)
}

fn flags(cursor: &mut Cursor<'_>) -> Result<u16, ScriptError> {
    cursor.skip()?;
    let begin = cursor.pos;
    let letters = cursor.run(|byte| !byte.is_ascii_whitespace());
    let mut bits = 0;
    for letter in letters {
        bits |= match letter {
            b'F' => 1,
            b'S' => 1 << 1,
            b'R' => 1 << 2,
            b'P' => 1 << 3,
            b'.' => 1 << 4,
            b'U' => 1 << 5,
            b'E' => 1 << 6,
            b'W' | b'C' => 1 << 7,
            b'A' | b'N' => 1 << 8,
            // The ACE field of accurate ECN: AE, CWR, ECE.
            b'0'..=b'7' => u16::from(letter - b'0') << 6,
            b'-' if letters.len() == 1 => 0,
            _ => {
                cursor.pos = begin;
                return Err(cursor.expected("TCP flags (letters of FSRP.UEWA, an ACE digit, or - for none)"));
            }
        };
    }
    if letters.is_empty() {
        return Err(cursor.expected("TCP flags (letters of FSRP.UEWA, an ACE digit, or - for none)"));
    }
    Ok(bits)
}

/// `start:end(len)`.
fn sequence(cursor: &mut Cursor<'_>) -> Result<(u32, u32), ScriptError> {
    const WANTED: &str = "a sequence number, as in 1:1001(1000)";
    cursor.skip()?;
    let begin = cursor.pos;
    let start = cursor.unsigned(u32::MAX, WANTED)?;
    cursor.expect(":", "in start:end(length)")?;
    let end = cursor.unsigned(u32::MAX, WANTED)?;
    cursor.expect("(", "in start:end(length)")?;
    let len = cursor.unsigned(MAX_PAYLOAD, "a payload length")?;
    cursor.expect(")", "in start:end(length)")?;
    if end != start.wrapping_add(len) {
        cursor.pos = begin;
        return Err(cursor.error(&format!(
            "the end of a sequence range is its start and its length: expected {start}:{}({len})",
            start.wrapping_add(len)
        )));
    }
    Ok((start, len))
}

fn options(cursor: &mut Cursor<'_>) -> Result<OptionList, ScriptError> {
    cursor.skip()?;
    if cursor.take("...") {
        cursor.expect(">", "after the options")?;
        return Ok(OptionList::Any);
    }
    let mut list = Vec::new();
    if cursor.eat(">")? {
        return Ok(OptionList::These(list));
    }
    loop {
        list.push(option(cursor)?);
        if cursor.eat(">")? {
            return Ok(OptionList::These(list));
        }
        if !cursor.eat(",")? {
            return Err(cursor.expected("`,` or `>` after a TCP option"));
        }
    }
}

fn option(cursor: &mut Cursor<'_>) -> Result<TcpOption, ScriptError> {
    cursor.skip()?;
    let begin = cursor.pos;
    Ok(match cursor.word()?.as_str() {
        "eol" => TcpOption::Eol,
        "nop" => TcpOption::Nop,
        "mss" => TcpOption::Mss(cursor.unsigned(65_535, "an MSS")? as u16),
        "wscale" => TcpOption::WindowScale(cursor.unsigned(255, "a window scale")? as u8),
        "sackOK" => TcpOption::SackPermitted,
        "sack" => {
            let mut blocks = Vec::new();
            loop {
                cursor.skip()?;
                if !cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    break;
                }
                let left = cursor.unsigned(u32::MAX, "the left edge of a SACK block")?;
                cursor.expect(":", "between the edges of a SACK block")?;
                blocks.push((left, cursor.unsigned(u32::MAX, "the right edge of a SACK block")?));
            }
            TcpOption::Sack(blocks)
        }
        "TS" => {
            if cursor.word()? != "val" {
                return Err(cursor.expected("`val` after `TS`"));
            }
            let val = cursor.unsigned(u32::MAX, "a timestamp")?;
            if cursor.word()? != "ecr" {
                return Err(cursor.expected("`ecr` after the timestamp"));
            }
            let ecr = cursor.unsigned(u32::MAX, "an echoed timestamp")?;
            TcpOption::Timestamps { val, ecr }
        }
        "FO" => TcpOption::FastOpen(hexadecimal(cursor)?),
        "FOEXP" => TcpOption::FastOpenExperimental(hexadecimal(cursor)?),
        "md5" => TcpOption::Md5(hexadecimal(cursor)?),
        "ECN" => {
            let mut fields = Vec::new();
            loop {
                let field = match cursor.peek_word()?.as_str() {
                    "e0b" => AccEcnField::Ect0,
                    "ceb" => AccEcnField::Ce,
                    "e1b" => AccEcnField::Ect1,
                    _ => break,
                };
                cursor.word()?;
                fields.push((field, cursor.unsigned(0xff_ffff, "a byte counter")?));
            }
            TcpOption::AccEcn(fields)
        }
        word => {
            cursor.pos = begin;
            if word.starts_with("mp_") || word == "exp" || word == "tfo" {
                return Err(cursor.unsupported(&format!("TCP option `{word}`")));
            }
            return Err(cursor
                .expected("a TCP option (nop, eol, mss, wscale, sackOK, sack, TS, FO, FOEXP, md5, ECN)"));
        }
    })
}

/// Bytes as pairs of digits; none if no digit is next.
fn hexadecimal(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, ScriptError> {
    cursor.skip()?;
    let begin = cursor.pos;
    cursor.take("0x");
    let digits = cursor.run(|byte| byte.is_ascii_alphanumeric());
    if digits.len() > 64 || !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        cursor.pos = begin;
        return Err(cursor.expected("bytes as pairs of hexadecimal digits"));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    Ok(digits
        .chunks_exact(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect())
}

fn icmp(cursor: &mut Cursor<'_>, quoted: Quoted) -> Result<IcmpLine, ScriptError> {
    cursor.skip()?;
    let begin = cursor.pos;
    let name = cursor.word()?;
    let kind = match numbered(&name, "type_") {
        Some(number) => IcmpKind::Number(number),
        None => match ICMP_KINDS.iter().find(|kind| kind.0 == name) {
            Some((_, four, six)) => IcmpKind::Named(*four, *six),
            None => {
                cursor.pos = begin;
                return Err(cursor.expected("an ICMP type by name, or type_N"));
            }
        },
    };
    let mut line = IcmpLine {
        kind,
        code: 0,
        mtu: None,
        quoted,
    };
    let word = cursor.peek_word()?;
    if !word.is_empty() && word != "mtu" && word != "id" {
        cursor.skip()?;
        line.code = match numbered(&word, "code_") {
            Some(code) => code,
            None => match ICMP_CODES.iter().find(|code| code.0 == word) {
                Some((_, code)) => *code,
                None => return Err(cursor.expected("an ICMP code by name, or code_N")),
            },
        };
        cursor.word()?;
    }
    if cursor.peek_word()? == "mtu" {
        cursor.word()?;
        line.mtu = Some(cursor.unsigned(u32::MAX, "an MTU")?);
    }
    cursor.skip()?;
    if cursor.take("[") {
        if cursor.peek_word()? == "udp" {
            cursor.word()?;
            line.quoted = Quoted::Udp(udp_len(cursor)?);
        } else {
            line.quoted = quoted_tcp(cursor)?;
        }
        cursor.expect("]", "after what the message quotes")?;
    }
    Ok(line)
}

fn quoted_tcp(cursor: &mut Cursor<'_>) -> Result<Quoted, ScriptError> {
    let (seq, len) = sequence(cursor)?;
    Ok(Quoted::Tcp { seq, len })
}

fn numbered(word: &str, prefix: &str) -> Option<u8> {
    word.strip_prefix(prefix)?.parse().ok()
}

/// Longest payload of a line: what one IP packet can carry, and more for lines met by many segments.
const MAX_PAYLOAD: u32 = 1 << 30;

/// Names, and the numbers they mean in IPv4 and in IPv6.
const ICMP_KINDS: [(&str, Option<u8>, Option<u8>); 16] = [
    ("unreachable", Some(3), Some(1)),
    ("echo_request", Some(8), Some(128)),
    ("echo_reply", Some(0), Some(129)),
    ("time_exceeded", Some(11), Some(3)),
    ("parameter_problem", Some(12), Some(4)),
    ("packet_too_big", None, Some(2)),
    ("source_quench", Some(4), None),
    ("redirect", Some(5), Some(137)),
    ("router_advertisement", Some(9), Some(134)),
    ("router_solicitation", Some(10), Some(133)),
    ("timestamp_request", Some(13), None),
    ("timestamp_reply", Some(14), None),
    ("information_request", Some(15), None),
    ("information_reply", Some(16), None),
    ("address_mask_request", Some(17), None),
    ("address_mask_reply", Some(18), None),
];

/// Names of codes; those of "unreachable" are IPv4's, the last five IPv6's.
const ICMP_CODES: [(&str, u8); 22] = [
    ("net_unreachable", 0),
    ("host_unreachable", 1),
    ("protocol_unreachable", 2),
    ("port_unreachable", 3),
    ("frag_needed", 4),
    ("source_route_failed", 5),
    ("net_unknown", 6),
    ("host_unknown", 7),
    ("source_host_isolated", 8),
    ("net_prohibited", 9),
    ("host_prohibited", 10),
    ("net_unreachable_for_tos", 11),
    ("host_unreachable_for_tos", 12),
    ("packet_filtered", 13),
    ("precedence_violation", 14),
    ("precedence_cutoff", 15),
    ("no_route", 0),
    ("admin_prohibited", 1),
    ("not_neighbour", 2),
    ("not_neighbor", 2),
    ("addr_unreachable", 3),
    ("address_unreachable", 3),
];
