//! Whether what came out is what a line says.
//!
//! One line may be met by several segments ([`join`]), as a stack is free to cut its stream where it likes; everything
//! else is compared to the letter.

use super::ast::{IpInfo, OptionList, SeqForm, TcpLine, TcpOption, Tos};
use super::track::{ACK, SYN, show_flags, show_options};
use super::wire::{Packet, Segment};

/// What is not compared in the neutral mode, in which scripts written for another system are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neutral {
    /// Options of segments without SYN are compared.
    pub options: bool,
    /// The stack starts without a phase of immediate acknowledgments.
    pub delayed_from_start: bool,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) field: &'static str,
    pub(super) expected: String,
    pub(super) seen: String,
}

/// Adds a further segment to what met a line so far.
///
/// # Errors
/// The segment does not continue what is there.
pub(super) fn join(
    line: &TcpLine,
    so_far: &Segment,
    next: &Segment,
    first_len: u32,
) -> Result<Segment, String> {
    const MAY_DIFFER: u16 = 1 | 1 << 3 | 1 << 7; // FIN, PSH, CWR
    if so_far.len + next.len > line.len {
        return Err(format!(
            "segments of {} and {} bytes where the line has {}",
            so_far.len, next.len, line.len
        ));
    }
    if next.len == 0 {
        return Err("a segment without payload among those that meet one line".to_owned());
    }
    if !so_far.len.is_multiple_of(first_len) || next.len > first_len {
        return Err(format!(
            "segments of unequal length: {first_len} bytes first, then {}",
            next.len
        ));
    }
    if so_far.seq.wrapping_add(so_far.len) != next.seq {
        return Err(format!(
            "a segment at {} where {} comes next",
            next.seq,
            so_far.seq.wrapping_add(so_far.len)
        ));
    }
    if (so_far.flags ^ next.flags) & !MAY_DIFFER != 0
        || (so_far.ack, so_far.window, so_far.urgent) != (next.ack, next.window, next.urgent)
    {
        return Err("segments whose flags, acknowledgment, window or urgent pointer differ".to_owned());
    }
    const CWR: u16 = 1 << 7;
    Ok(Segment {
        seq: so_far.seq,
        len: so_far.len + next.len,
        flags: next.flags & !CWR | so_far.flags & CWR,
        zeros: so_far.zeros && next.zeros,
        ..next.clone()
    })
}

/// Compares a segment, its numbers as the script counts, with a line.
pub(super) fn compare(
    line: &TcpLine,
    info: &IpInfo,
    packet: &Packet,
    segment: &Segment,
    live_seq: u32,
    neutral: Option<Neutral>,
    any_scale: bool,
) -> Vec<Difference> {
    let mut found = compare_ip(info, packet);
    let mut differ = |field, expected: String, seen: String| {
        if expected != seen {
            found.push(Difference {
                field,
                expected,
                seen,
            });
        }
    };
    differ("flags", show_flags(line.flags), show_flags(segment.flags));
    differ("reserved bits", "0".to_owned(), segment.reserved.to_string());
    let seq = match line.seq_form {
        SeqForm::Relative => Some(segment.seq),
        SeqForm::Absolute => Some(live_seq),
        SeqForm::Unsaid => None,
    };
    if let Some(seq) = seq {
        differ("sequence number", line.seq.to_string(), seq.to_string());
    }
    differ("payload length", line.len.to_string(), segment.len.to_string());
    if line.ack.is_some() || segment.flags & ACK != 0 {
        differ(
            "acknowledgment",
            line.ack.unwrap_or(0).to_string(),
            segment.ack.to_string(),
        );
    }
    if let Some(window) = line.window
        && neutral.is_none()
    {
        differ("window", window.to_string(), segment.window.to_string());
    }
    differ(
        "urgent pointer",
        line.urgent.to_string(),
        segment.urgent.to_string(),
    );
    let look = neutral.is_none_or(|neutral| neutral.options && segment.flags & SYN == 0);
    if let OptionList::These(options) = &line.options
        && look
    {
        differ(
            "options",
            written(options),
            written(&comparable(options, &segment.options, any_scale)),
        );
    }
    if !segment.zeros {
        differ("payload", "zeros".to_owned(), "other bytes".to_owned());
    }
    found
}

pub(super) fn compare_ip(info: &IpInfo, packet: &Packet) -> Vec<Difference> {
    const ECN: [&str; 4] = ["noecn", "ect1", "ect0", "ce"];
    let mut found = Vec::new();
    let mut differ = |field, expected: String, seen: String| {
        if expected != seen {
            found.push(Difference {
                field,
                expected,
                seen,
            });
        }
    };
    let seen = ECN[usize::from(packet.tos & 3)].to_owned();
    match info.tos {
        Tos::Unsaid => {}
        Tos::Byte(tos) => differ(
            "traffic class",
            format!("{tos:#04x}"),
            format!("{:#04x}", packet.tos),
        ),
        Tos::Ecn(ecn) => differ("ECN bits", ECN[usize::from(ecn & 3)].to_owned(), seen),
        Tos::AnyEct => {
            if !matches!(packet.tos & 3, 1 | 2) {
                differ("ECN bits", "ect01".to_owned(), seen);
            }
        }
    }
    if let Some(ttl) = info.ttl {
        differ("time to live", ttl.to_string(), packet.ttl.to_string());
    }
    if let Some(label) = info.flow_label {
        differ(
            "flow label",
            format!("{label:#x}"),
            format!("{:#x}", packet.flow_label),
        );
    }
    found
}

/// The seen options with the timestamp values of the line: those of the stack's clock are checked elsewhere. With `any_scale`
/// also with its window scale.
fn comparable(line: &[TcpOption], seen: &[TcpOption], any_scale: bool) -> Vec<TcpOption> {
    let val = line.iter().find_map(|option| match option {
        TcpOption::Timestamps { val, .. } => Some(*val),
        _ => None,
    });
    let scale = line.iter().find_map(|option| match option {
        TcpOption::WindowScale(scale) if any_scale => Some(*scale),
        _ => None,
    });
    seen.iter()
        .map(|option| match (option, val) {
            (TcpOption::Timestamps { ecr, .. }, Some(val)) => TcpOption::Timestamps { val, ecr: *ecr },
            (TcpOption::WindowScale(seen), _) => TcpOption::WindowScale(scale.unwrap_or(*seen)),
            (option, _) => option.clone(),
        })
        .collect()
}

fn written(options: &[TcpOption]) -> String {
    format!("<{}>", show_options(options))
}
