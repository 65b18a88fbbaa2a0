//! Packets of a script: into the stack, and out of it against their lines.

use super::{
    FIRST_PEER_PORT, PATIENCE, PATIENCE_ANY, PORT, Run, Stop, TICK, Timing, Verdict, broken, seconds,
    unsupported,
};
use crate::ast::{
    Body, Direction, Event, IcmpKind, IcmpLine, IpInfo, OptionList, PacketLine, Quoted, TcpLine, TcpOption,
    Time, Tos,
};
use crate::matching::{self, Difference};
use crate::track::{ACK, Track, show};
use crate::wire::{self, Envelope, Packet, Segment};
use fleetfoot_core::time::Instant;

impl<'s> Run<'s> {
    fn envelope(&self, inbound: bool, info: &IpInfo) -> Envelope {
        let (source, destination) = if inbound {
            (self.setup.remote, self.setup.local)
        } else {
            (self.setup.local, self.setup.remote)
        };
        Envelope {
            source,
            destination,
            tos: match info.tos {
                Tos::Unsaid => 0,
                Tos::Byte(tos) | Tos::Ecn(tos) => tos,
                Tos::AnyEct => 2,
            },
            ttl: info.ttl.unwrap_or(255),
            flow_label: info.flow_label.unwrap_or(0),
        }
    }

    pub(super) fn inbound(&mut self, event: &Event, line: &PacketLine) -> Result<(), Stop> {
        let envelope = self.envelope(true, &line.ip);
        if self.track.is_none() {
            let port = FIRST_PEER_PORT + self.peers;
            self.peers += 1;
            self.track = Some(Track::passive(PORT, port));
        }
        let bytes = match &line.body {
            Body::Tcp(tcp) => {
                let segment = self
                    .track
                    .as_mut()
                    .map_or(Err("no connection".to_owned()), |track| {
                        track.learn_peer(tcp);
                        track.inbound(tcp, line.ports, self.timestamp_scaled)
                    });
                segment.and_then(|segment| wire::encode_tcp(&envelope, &segment))
            }
            Body::Icmp(icmp) => self.icmp(&envelope, icmp),
            Body::Udp(len) => {
                let port = self.datagram_port.unwrap_or(PORT);
                wire::encode_udp(&envelope, line.ports.unwrap_or((PORT, port)), *len)
            }
        };
        let bytes = bytes.map_err(|error| self.fail(event, error, String::new()))?;
        self.log(self.since(self.now()), &strip_time(event));
        self.keep(self.now(), Direction::Inbound, &bytes);
        self.backend
            .inject(&bytes)
            .map_err(|trouble| broken(event.line, trouble))
    }

    fn icmp(&self, envelope: &Envelope, line: &IcmpLine) -> Result<Vec<u8>, String> {
        let four = envelope.source.is_ipv4();
        let kind = match line.kind {
            IcmpKind::Number(kind) => Some(kind),
            IcmpKind::Named(kind, _) if four => kind,
            IcmpKind::Named(_, kind) => kind,
        };
        let kind = kind.ok_or("this ICMP type does not exist in the script's IP version")?;
        let (seq, len) = match line.quoted {
            Quoted::Unsaid => (0, 0),
            Quoted::Tcp { seq, len } => (seq, len),
            Quoted::Udp(len) => {
                let port = self.datagram_port.ok_or("no datagram that could be quoted")?;
                let quoted_envelope = Envelope {
                    ttl: 64,
                    ..self.envelope(false, &IpInfo::default())
                };
                let quoted = wire::quote_udp(&quoted_envelope, (port, PORT), len)?;
                return wire::encode_icmp(envelope, kind, line.code, line.mtu.unwrap_or(0), &quoted);
            }
        };
        let track = self.track.as_ref().ok_or("no connection to quote")?;
        let quoted_envelope = Envelope {
            ttl: 64,
            ..self.envelope(false, &IpInfo::default())
        };
        let ports = (track.local_port().unwrap_or(PORT), track.remote_port());
        let quoted = wire::quote_tcp(&quoted_envelope, ports, track.local_live(seq), len)?;
        wire::encode_icmp(envelope, kind, line.code, line.mtu.unwrap_or(0), &quoted)
    }

    /// The next segment the stack sent for the connection under test.
    pub(super) fn next_segment(
        &mut self,
        line: u32,
        deadline: Instant,
    ) -> Result<Option<(Instant, Packet, Segment)>, Stop> {
        loop {
            let Some(outbound) = self
                .backend
                .next_packet(deadline)
                .map_err(|trouble| broken(line, trouble))?
            else {
                return Ok(None);
            };
            let packet = wire::decode(&outbound.bytes).map_err(|error| Stop {
                verdict: Verdict::Fail,
                line,
                reason: format!("the stack sent {error}"),
                detail: String::new(),
            })?;
            self.keep(outbound.at, Direction::Outbound, &outbound.bytes);
            let wire::Body::Tcp(segment) = &packet.body else {
                self.log(
                    self.since(outbound.at),
                    &format!("> {:?} (not looked at)", packet.body),
                );
                continue;
            };
            let segment = segment.clone();
            let mine = packet.destination == self.setup.remote
                && outbound.at >= self.opened_at
                && self.track.as_ref().is_some_and(|track| track.owns(&segment));
            let shown = match &self.track {
                Some(track) if mine => show(&packet, &track.to_script(&segment)),
                _ => show(&packet, &segment),
            };
            if mine {
                self.by_timer = outbound.by_timer;
                self.log(self.since(outbound.at), &format!("> {shown}"));
                return Ok(Some((outbound.at, packet, segment)));
            }
            self.log(
                self.since(outbound.at),
                &format!("> {shown} (of another connection)"),
            );
        }
    }

    /// Meets an outbound line with what the stack sends.
    pub(super) fn outbound(
        &mut self,
        event: &Event,
        line: &PacketLine,
        (earliest, latest): (i64, i64),
        span: i64,
    ) -> Result<(), Stop> {
        let tcp = match &line.body {
            Body::Tcp(tcp) => tcp,
            Body::Udp(len) => return self.outbound_datagram(event, &line.ip, *len, (earliest, latest), span),
            Body::Icmp(_) => {
                return Err(unsupported(event.line, "outbound ICMP messages".to_owned()));
            }
        };
        if self.track.is_none() {
            return Err(self.fail(
                event,
                "no connection: neither a call nor a packet has begun one".to_owned(),
                String::new(),
            ));
        }
        let deadline = self.patience(event, latest);
        let Some((mut at, mut packet, first)) = self.next_segment(event.line, deadline)? else {
            return Err(self.nothing(event));
        };
        self.settle()?;
        if let Some(track) = &mut self.track {
            track.learn(tcp, &first);
            track.learn_timestamp(tcp, &first);
        }
        let live_seq = first.seq;
        let mut segment = self.to_script(&first);
        let first_len = segment.len;
        while !self.strict_segments && first_len > 0 && segment.len < tcp.len {
            let Some((next_at, next_packet, next)) = self.next_segment(event.line, deadline)? else {
                break;
            };
            self.settle()?;
            let next = self.to_script(&next);
            match matching::join(tcp, &segment, &next, first_len) {
                Ok(joined) => segment = joined,
                Err(reason) => return Err(self.fail(event, reason, beside(event, &packet, &segment, &[]))),
            }
            (at, packet) = (next_at, next_packet);
        }
        let any_scale = self.rules.kernel && self.rules.old_linux;
        let differences = matching::compare(
            tcp,
            &line.ip,
            &packet,
            &segment,
            live_seq,
            self.rules.neutral,
            any_scale,
        );
        if !differences.is_empty() {
            let reason: Vec<_> = differences
                .iter()
                .map(|found| {
                    format!(
                        "{}: expected {}, seen {}",
                        found.field, found.expected, found.seen
                    )
                })
                .collect();
            let detail = beside(event, &packet, &segment, &differences);
            return Err(self.fail(event, reason.join("; "), detail));
        }
        self.check_timestamp(event, tcp, &segment, at, span)?;
        self.check_time(event, at, (earliest, latest), span)?;
        self.finished = self.since(at);
        Ok(())
    }

    /// How long to wait for the packet of an outbound line.
    fn patience(&self, event: &Event, latest: i64) -> Instant {
        self.instant(if event.time == Time::Any {
            self.finished + PATIENCE_ANY
        } else {
            latest.max(self.finished) + PATIENCE
        })
    }

    /// Meets an outbound line `udp (len)`.
    fn outbound_datagram(
        &mut self,
        event: &Event,
        info: &IpInfo,
        len: u32,
        times: (i64, i64),
        span: i64,
    ) -> Result<(), Stop> {
        let deadline = self.patience(event, times.1);
        loop {
            let Some(outbound) = self
                .backend
                .next_packet(deadline)
                .map_err(|trouble| broken(event.line, trouble))?
            else {
                return Err(self.nothing(event));
            };
            let packet = wire::decode(&outbound.bytes)
                .map_err(|error| self.fail(event, format!("the stack sent {error}"), String::new()))?;
            self.keep(outbound.at, Direction::Outbound, &outbound.bytes);
            self.log(self.since(outbound.at), &format!("> {:?}", packet.body));
            let wire::Body::Udp { ports, len: seen } = packet.body else {
                continue;
            };
            if packet.destination != self.setup.remote {
                continue;
            }
            self.settle()?;
            self.datagram_port = Some(ports.0);
            self.by_timer = outbound.by_timer;
            let mut reasons: Vec<String> = matching::compare_ip(info, &packet)
                .iter()
                .map(|found| {
                    format!(
                        "{}: expected {}, seen {}",
                        found.field, found.expected, found.seen
                    )
                })
                .collect();
            if seen != len {
                reasons.push(format!("payload length: expected {len}, seen {seen}"));
            }
            if !reasons.is_empty() {
                return Err(self.fail(event, reasons.join("; "), String::new()));
            }
            self.check_time(event, outbound.at, times, span)?;
            self.finished = self.since(outbound.at);
            return Ok(());
        }
    }

    fn to_script(&self, segment: &Segment) -> Segment {
        match &self.track {
            Some(track) => track.to_script(segment),
            None => segment.clone(),
        }
    }

    fn nothing(&self, event: &Event) -> Stop {
        let waited = seconds(self.since(self.now()));
        self.fail(
            event,
            format!("no packet came out up to {waited}"),
            format!("  expected: {}\n  seen:     nothing\n", event.text),
        )
    }

    fn check_time(
        &mut self,
        event: &Event,
        at: Instant,
        (earliest, latest): (i64, i64),
        span: i64,
    ) -> Result<(), Stop> {
        if event.time == Time::Any {
            return Ok(());
        }
        let at = self.since(at);
        let off = if at < earliest {
            at - earliest
        } else {
            (at - latest).max(0)
        };
        self.timing.push(Timing {
            line: event.line,
            off,
        });
        let tick = if self.by_timer && self.rules.tolerance.is_none() {
            TICK
        } else {
            0
        };
        if off.abs() <= self.tolerance(span) + tick {
            return Ok(());
        }
        let wanted = if earliest == latest {
            seconds(earliest)
        } else {
            format!("{} to {}", seconds(earliest), seconds(latest))
        };
        Err(self.fail(
            event,
            format!("time: expected {wanted}, seen {}", seconds(at)),
            format!(
                "  expected: at {wanted}: {}\n  seen:     at {}\n",
                event.text,
                seconds(at)
            ),
        ))
    }

    /// The stack's clock, for scripts that say how it ticks.
    fn check_timestamp(
        &self,
        event: &Event,
        line: &TcpLine,
        segment: &Segment,
        at: Instant,
        span: i64,
    ) -> Result<(), Stop> {
        let first = self.track.as_ref().and_then(Track::first_timestamp);
        let OptionList::These(options) = &line.options else {
            return Ok(());
        };
        let val = |options: &[TcpOption]| {
            options.iter().find_map(|option| match option {
                TcpOption::Timestamps { val, .. } => Some(*val),
                _ => None,
            })
        };
        let (Some(first), Some(wanted), Some(seen)) = (first, val(options), val(&segment.options)) else {
            return Ok(());
        };
        if self.timestamp_tick == 0 || line.flags & ACK == 0 && wanted == first.0 {
            return Ok(());
        }
        let ticks = seen
            .wrapping_sub(first.1)
            .wrapping_sub(wanted.wrapping_sub(first.0)) as i32;
        let off = i64::from(ticks) * self.timestamp_tick as i64;
        if off.abs() <= self.tolerance(span.max(self.since(at))) {
            return Ok(());
        }
        Err(self.fail(
            event,
            format!("timestamp: {ticks} ticks from the expected value"),
            String::new(),
        ))
    }
}

/// Expected and seen, one above the other.
fn beside(event: &Event, packet: &Packet, segment: &Segment, differences: &[Difference]) -> String {
    let mut text = format!(
        "  expected: {}\n  seen:     > {}\n",
        strip_time(event),
        show(packet, segment)
    );
    for found in differences {
        text.push_str(&format!(
            "    {}: expected {}, seen {}\n",
            found.field, found.expected, found.seen
        ));
    }
    text
}

/// The line without its time.
fn strip_time(event: &Event) -> String {
    let from = event.text.find(['<', '>']).unwrap_or(0);
    event.text[from..].to_owned()
}
