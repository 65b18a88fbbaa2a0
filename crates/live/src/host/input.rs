//! Packets and time: what arrives, what leaves, and what of it is kept.

use super::{Host, echo, hold};
use crate::Error;
use fleetfoot_core::packet::{Flags, Kind};
use fleetfoot_core::socket::{Header, IcmpError, Notice, Packet};
use fleetfoot_core::time::Instant;
use fleetfoot_core::wire;

impl Host {
    /// Does what there is to do: packets that have arrived, what is due, what was written. Whether packets may still wait: then the
    /// caller should look at its other work and come back without sleeping.
    ///
    /// # Errors
    /// The device is gone.
    pub fn work(&mut self) -> Result<bool, Error> {
        self.flush()?;
        let mut buffer = std::mem::take(&mut self.arriving);
        let read = self.read_packets(&mut buffer);
        self.arriving = buffer;
        let more = read?;
        let now = self.clock.now();
        if self.stack.poll_timeout().is_some_and(|due| due <= now) {
            self.stack.on_timeout(now);
            self.flush()?;
        }
        self.look_around();
        Ok(more)
    }

    /// Sends what connections have to say, without looking at what has arrived.
    ///
    /// # Errors
    /// The device is gone.
    pub fn flush(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        while let Some(packet) = self.stack.poll_transmit(now) {
            self.send(&packet)?;
        }
        Ok(())
    }

    fn read_packets(&mut self, buffer: &mut [u8]) -> Result<bool, Error> {
        // So many at once at most: timers and the other work of the caller must not wait for ever.
        for _ in 0..BATCH {
            let Some(length) = self.device.receive(buffer)? else {
                return Ok(false);
            };
            let packet = buffer.get_mut(..length).unwrap_or_default();
            self.counters.packets_in += 1;
            self.counters.bytes_in += length as u64;
            let now = self.clock.now();
            self.on_packet(now, packet)?;
            // After each, as on a wire: acknowledgments are those of an endpoint that sees packets one by one.
            while let Some(packet) = self.stack.poll_transmit(now) {
                self.send(&packet)?;
            }
        }
        Ok(true)
    }

    fn on_packet(&mut self, now: Instant, bytes: &mut [u8]) -> Result<(), Error> {
        match wire::parse(bytes) {
            Ok(parsed) if parsed.segment.kind() == Kind::Tcp => {
                self.on_segment(now, &parsed, bytes);
                Ok(())
            }
            Ok(_) | Err(wire::Error::Protocol) => self.on_other(now, bytes),
            Err(error) => {
                self.counters.count(error);
                Ok(())
            }
        }
    }

    fn on_segment(&mut self, now: Instant, parsed: &wire::Parsed, bytes: &[u8]) {
        if !self.is_ours(parsed.destination.ip()) {
            self.counters.other_address += 1;
            return;
        }
        let header = Header {
            source: parsed.source,
            destination: parsed.destination,
        };
        let arrival = self.stack.on_packet(now, &header, &parsed.segment);
        let Some(id) = arrival.connection else {
            return;
        };
        let payload = bytes.get(parsed.payload.clone()).unwrap_or_default();
        let pieces = std::iter::once(&arrival.accepted).chain(&arrival.further);
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let start = usize::try_from(piece.start as i64 - arrival.origin).unwrap_or(usize::MAX);
            let end = start.saturating_add((piece.end - piece.start) as usize);
            match payload.get(start..end) {
                Some(taken) => {
                    hold(&mut self.held, &mut self.pool, id)
                        .received
                        .put(&mut self.pool, piece.start, taken);
                }
                None => self.counters.lost_bytes += piece.end - piece.start,
            }
        }
        if let Some(connection) = self.stack.connection_by_id(id) {
            let acked = connection.acked();
            let held = self.held.get_mut(id.slot as usize);
            if let Some(held) = held.filter(|held| held.generation == id.generation) {
                held.written.release(&mut self.pool, acked);
            }
        }
    }

    /// No TCP: an ICMP error about it, a ping, or something else.
    fn on_other(&mut self, now: Instant, bytes: &mut [u8]) -> Result<(), Error> {
        match wire::parse_icmp(bytes) {
            Ok(message) => {
                if !self.is_ours(message.source.ip()) {
                    self.counters.other_address += 1;
                    return Ok(());
                }
                let Some((kind, code, mtu)) = wire::code_of(message.source.is_ipv6(), message.icmp.kind)
                else {
                    return Ok(());
                };
                self.counters.icmp_errors += 1;
                let header = Header {
                    source: message.source,
                    destination: message.destination,
                };
                let error = IcmpError {
                    kind,
                    code,
                    mtu,
                    seq: message.icmp.seq,
                };
                self.stack.on_icmp(now, &header, &error);
            }
            Err(wire::Error::Protocol) => {
                let answer = echo::answer(bytes, &self.stack.config().addresses);
                let Some(answer) = answer.and_then(|length| bytes.get(..length)) else {
                    self.counters.other_protocol += 1;
                    return Ok(());
                };
                self.counters.echo_replies += 1;
                self.counters.packets_out += 1;
                self.counters.bytes_out += answer.len() as u64;
                if !self.device.send(answer)? {
                    self.counters.device_full += 1;
                }
            }
            Err(error) => self.counters.count(error),
        }
        Ok(())
    }

    fn is_ours(&self, address: std::net::IpAddr) -> bool {
        self.stack.config().addresses.contains(&address)
    }

    fn send(&mut self, packet: &Packet) -> Result<(), Error> {
        let written = packet.connection.and_then(|id| {
            self.held
                .get(id.slot as usize)
                .filter(|held| held.generation == id.generation)
        });
        let (start, length) = (packet.range.start, packet.range.end - packet.range.start);
        let mut there = true;
        let encoded = wire::encode_with(
            &mut self.leaving,
            &packet.segment,
            packet.header.source,
            packet.header.destination,
            |room| {
                there = match written {
                    Some(held) if length == room.len() as u64 => held.written.get(start, room),
                    // A keep-alive or probe of a byte that was acknowledged: its content does not matter (RFC 9293 3.8.4).
                    Some(_) | None => room.is_empty(),
                };
                if !there {
                    room.fill(0);
                }
            },
        );
        if !there {
            self.counters.lost_bytes += length;
        }
        let Some(bytes) = encoded.ok().and_then(|length| self.leaving.get(..length)) else {
            self.counters.device_full += 1; // never: the buffer holds the device's MTU
            return Ok(());
        };
        self.counters.packets_out += 1;
        self.counters.bytes_out += bytes.len() as u64;
        if packet.connection.is_none() && packet.segment.flags.contains(Flags::RST) {
            self.counters.resets_out += 1;
        }
        if !self.device.send(bytes)? {
            self.counters.device_full += 1;
        }
        Ok(())
    }

    /// Takes the notices of the stack.
    fn look_around(&mut self) {
        let now = self.clock.now();
        while let Some(notice) = self.stack.poll_notice() {
            match notice {
                Notice::Socket(fd) => self.look(now, fd),
                Notice::Ended(id) => {
                    let held = self.held.get_mut(id.slot as usize);
                    if let Some(held) = held.filter(|held| held.generation == id.generation) {
                        held.received.clear(&mut self.pool);
                        held.written.clear(&mut self.pool);
                    }
                }
            }
        }
    }
}

/// Packets that are read in a row.
const BATCH: usize = 64;
