//! The connection under test: which packets belong to it, and what the script's numbers are on the wire.
//!
//! A script counts both initial sequence numbers from zero and invents timestamps. [`Track`] remembers the distance
//! between the script's numbers and the live ones for each side, and which live timestamp stands for each that the script
//! names.

use super::ast::{OptionList, SeqForm, TcpLine, TcpOption};
use super::wire::{Packet, Segment};

/// One connection, from the first packet or call that belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// Port of the stack under test; unknown until its SYN is seen.
    local_port: Option<u16>,
    remote_port: u16,
    /// Initial sequence numbers of the stack under test: live, and as the script's SYN has it.
    local_isn: Option<(u32, u32)>,
    /// Initial sequence number of the peer: the script's is the live one.
    remote_isn: Option<u32>,
    /// Timestamps the stack sent: as the script names them, and live.
    timestamps: Vec<(u32, u32)>,
}

pub(super) const SYN: u16 = 1 << 1;
pub(super) const ACK: u16 = 1 << 4;

impl Track {
    /// The stack under test opens.
    pub(super) fn active(remote_port: u16) -> Track {
        Track {
            local_port: None,
            remote_port,
            local_isn: None,
            remote_isn: None,
            timestamps: Vec::new(),
        }
    }

    /// The peer opens, or sends something out of the blue.
    pub(super) fn passive(local_port: u16, remote_port: u16) -> Track {
        Track {
            local_port: Some(local_port),
            ..Track::active(remote_port)
        }
    }

    pub(super) fn local_port(&self) -> Option<u16> {
        self.local_port
    }

    pub(super) fn remote_port(&self) -> u16 {
        self.remote_port
    }

    /// Whether a segment the stack sent belongs to this connection.
    pub(super) fn owns(&self, segment: &Segment) -> bool {
        let opens = segment.flags & (SYN | ACK) == SYN;
        segment.destination_port == self.remote_port
            && (self.local_port == Some(segment.source_port) || opens && self.is_active())
    }

    /// Whether the stack under test opened it.
    pub(super) fn is_active(&self) -> bool {
        self.remote_port < FIRST_PEER_PORT
    }

    /// Learns from the first segment of the stack that a line is met by.
    pub(super) fn learn(&mut self, line: &TcpLine, segment: &Segment) {
        let opens = segment.flags & (SYN | ACK) == SYN;
        if opens && self.is_active() && self.local_port != Some(segment.source_port) {
            self.local_port = Some(segment.source_port);
            self.local_isn = None;
            self.timestamps.clear();
        }
        let says = line.flags & SYN != 0 && segment.flags & SYN != 0 && line.seq_form != SeqForm::Absolute;
        if says && (self.local_isn.is_none() || line.seq_form == SeqForm::Unsaid) {
            self.local_isn = Some((segment.seq, line.seq));
        }
    }

    /// Remembers the live timestamp that stands for the script's.
    pub(super) fn learn_timestamp(&mut self, line: &TcpLine, segment: &Segment) {
        let val = |options: &[TcpOption]| {
            options.iter().find_map(|option| match option {
                TcpOption::Timestamps { val, .. } => Some(*val),
                _ => None,
            })
        };
        if let OptionList::These(options) = &line.options
            && let (Some(script), Some(live)) = (val(options), val(&segment.options))
        {
            self.timestamps.push((script, live));
        }
    }

    /// First timestamp the stack sent: the script's name for it, and live.
    pub(super) fn first_timestamp(&self) -> Option<(u32, u32)> {
        self.timestamps.first().copied()
    }

    /// Live number less script number, of the stack. A SYN says its initial number, all others count from it.
    fn local(&self, syn: bool) -> u32 {
        let (live, script) = self.local_isn.unwrap_or((0, 0));
        if syn { live.wrapping_sub(script) } else { live }
    }

    /// Live number less script number, of the peer.
    fn remote(&self, syn: bool) -> u32 {
        if syn { 0 } else { self.remote_isn.unwrap_or(0) }
    }

    /// Learns from the first SYN of the peer; a later one is an intruder in the same numbers.
    pub(super) fn learn_peer(&mut self, line: &TcpLine) {
        if line.flags & SYN != 0 && line.seq_form == SeqForm::Relative {
            self.remote_isn.get_or_insert(line.seq);
        }
    }

    /// A sequence number of the stack on the wire.
    pub(super) fn local_live(&self, script: u32) -> u32 {
        script.wrapping_add(self.local(false))
    }

    /// A segment of the stack with all its numbers as the script counts. Timestamps stay live.
    pub(super) fn to_script(&self, segment: &Segment) -> Segment {
        let syn = segment.flags & SYN != 0;
        let remote = |live: u32| live.wrapping_sub(self.remote(syn));
        let mut out = segment.clone();
        out.seq = segment.seq.wrapping_sub(self.local(syn));
        if segment.flags & ACK != 0 {
            out.ack = remote(segment.ack);
        }
        for option in &mut out.options {
            if let TcpOption::Sack(blocks) = option {
                for block in blocks {
                    *block = (remote(block.0), remote(block.1));
                }
            }
        }
        out
    }

    /// The live segment of an inbound line.
    ///
    /// # Errors
    /// The line echoes a timestamp that no line of the stack had.
    pub(super) fn inbound(
        &self,
        line: &TcpLine,
        ports: Option<(u16, u16)>,
        scaled: bool,
    ) -> Result<Segment, String> {
        let syn = line.flags & SYN != 0;
        let (source_port, destination_port) = match ports {
            Some(ports) => ports,
            None => (
                self.remote_port,
                self.local_port
                    .ok_or("the stack under test has not opened the connection yet")?,
            ),
        };
        let mut options = match &line.options {
            OptionList::These(options) => options.clone(),
            OptionList::Any => Vec::new(),
        };
        for option in &mut options {
            match option {
                TcpOption::Timestamps { ecr, .. } if line.flags & ACK != 0 => {
                    *ecr = self.live_timestamp(*ecr, scaled)?;
                }
                TcpOption::Sack(blocks) => {
                    for block in blocks {
                        *block = (self.local_live(block.0), self.local_live(block.1));
                    }
                }
                _ => {}
            }
        }
        Ok(Segment {
            source_port,
            destination_port,
            seq: line.seq.wrapping_add(self.remote(syn)),
            ack: line.ack.map_or(0, |ack| ack.wrapping_add(self.local(syn))),
            flags: line.flags,
            reserved: 0,
            window: line.window.unwrap_or(0),
            urgent: line.urgent,
            options,
            len: line.len,
            zeros: true,
        })
    }

    fn live_timestamp(&self, script: u32, scaled: bool) -> Result<u32, String> {
        if let Some(known) = self.timestamps.iter().rev().find(|known| known.0 == script) {
            return Ok(known.1);
        }
        match self.timestamps.first() {
            Some((first_script, first_live)) if scaled => {
                Ok(script.wrapping_sub(*first_script).wrapping_add(*first_live))
            }
            _ if script == 0 => Ok(0),
            _ => Err(format!(
                "the timestamp {script} is echoed, but no outbound line before has it"
            )),
        }
    }
}

/// A segment in the script's notation.
pub(super) fn show(packet: &Packet, segment: &Segment) -> String {
    let mut text = String::new();
    match packet.tos & 3 {
        0 => {}
        1 => text.push_str("[ect1] "),
        2 => text.push_str("[ect0] "),
        _ => text.push_str("[ce] "),
    }
    if packet.tos >> 2 != 0 {
        text = format!("(tos {:#04x}) ", packet.tos);
    }
    text.push_str(&show_flags(segment.flags));
    text.push_str(&format!(
        " {}:{}({})",
        segment.seq,
        segment.seq.wrapping_add(segment.len),
        segment.len
    ));
    if segment.flags & ACK != 0 || segment.ack != 0 {
        text.push_str(&format!(" ack {}", segment.ack));
    }
    text.push_str(&format!(" win {}", segment.window));
    if segment.urgent != 0 {
        text.push_str(&format!(" urg {}", segment.urgent));
    }
    if !segment.options.is_empty() {
        text.push_str(&format!(" <{}>", show_options(&segment.options)));
    }
    text
}

pub(super) fn show_flags(flags: u16) -> String {
    let text: String = "FSRP.UEWA"
        .chars()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 != 0)
        .map(|(_, letter)| letter)
        .collect();
    // The order people write: "S." and "P.", "SEW", "FP.".
    if text.is_empty() { "-".to_owned() } else { text }
}

pub(super) fn show_options(options: &[TcpOption]) -> String {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown: Vec<String> = options
        .iter()
        .map(|option| match option {
            TcpOption::Eol => "eol".to_owned(),
            TcpOption::Nop => "nop".to_owned(),
            TcpOption::Mss(mss) => format!("mss {mss}"),
            TcpOption::WindowScale(scale) => format!("wscale {scale}"),
            TcpOption::SackPermitted => "sackOK".to_owned(),
            TcpOption::Sack(blocks) => {
                let blocks: Vec<_> = blocks
                    .iter()
                    .map(|(left, right)| format!("{left}:{right}"))
                    .collect();
                format!("sack {}", blocks.join(" "))
            }
            TcpOption::Timestamps { val, ecr } => format!("TS val {val} ecr {ecr}"),
            TcpOption::FastOpen(cookie) => format!("FO {}", hexadecimal(cookie)).trim_end().to_owned(),
            TcpOption::FastOpenExperimental(cookie) => {
                format!("FOEXP {}", hexadecimal(cookie)).trim_end().to_owned()
            }
            TcpOption::Md5(digest) => format!("md5 {}", hexadecimal(digest)),
            TcpOption::AccEcn(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(field, count)| {
                        let name = match field {
                            super::ast::AccEcnField::Ect0 => "e0b",
                            super::ast::AccEcnField::Ce => "ceb",
                            super::ast::AccEcnField::Ect1 => "e1b",
                        };
                        format!("{name} {count}")
                    })
                    .collect();
                format!("ECN {}", fields.join(" "))
            }
            TcpOption::Other(kind, value) => format!("option {kind} {}", hexadecimal(value)),
        })
        .collect();
    shown.join(",")
}

/// Ports of peers that open connections; a peer that is connected to listens below.
pub(super) const FIRST_PEER_PORT: u16 = 40_000;
