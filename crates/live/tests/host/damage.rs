//! A path that loses, doubles, delays and damages packets, in front of a device.

use crate::peers::Noise;
use fleetfoot_live::Error;
use fleetfoot_live::host::Device;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Probabilities of what happens to a packet, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Damage {
    /// It is lost.
    pub(crate) loss: f64,
    /// It comes twice.
    pub(crate) twice: f64,
    /// It comes after the next three.
    pub(crate) late: f64,
    /// One of its bits is turned over.
    pub(crate) bits: f64,
}

impl Damage {
    pub(crate) const NONE: Damage = Damage {
        loss: 0.0,
        twice: 0.0,
        late: 0.0,
        bits: 0.0,
    };
}

pub(crate) struct Damaging {
    device: Box<dyn Device>,
    damage: Damage,
    noise: Noise,
    directions: [Direction; 2],
}

/// What waits in one direction.
#[derive(Default)]
struct Direction {
    /// To be handed over next.
    due: VecDeque<Vec<u8>>,
    /// To be handed over after so many others.
    held: Option<(u32, Vec<u8>)>,
}

impl Damaging {
    pub(crate) fn new(device: Box<dyn Device>, damage: Damage, seed: u64) -> Damaging {
        Damaging {
            device,
            damage,
            noise: Noise(seed),
            directions: Default::default(),
        }
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.noise.draw() >> 11) as f64 / ((1_u64 << 53) as f64) < probability
    }

    /// A packet goes in; what comes out is due.
    fn pass(&mut self, which: usize, mut packet: Vec<u8>) {
        let damage = self.damage;
        if self.happens(damage.loss) {
            return;
        }
        if self.happens(damage.bits) {
            let bit = self.noise.draw() as usize % (packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        let twice = self.happens(damage.twice);
        let late = self.happens(damage.late);
        let direction = &mut self.directions[which];
        if late && direction.held.is_none() {
            direction.held = Some((3, packet));
            return;
        }
        if twice {
            direction.due.push_back(packet.clone());
        }
        direction.due.push_back(packet);
        if let Some((left, _)) = &mut direction.held {
            *left -= 1;
            if *left == 0 {
                direction.release();
            }
        }
    }

    fn send_due(&mut self) -> Result<bool, Error> {
        let mut taken = true;
        while let Some(packet) = self.directions[1].due.pop_front() {
            taken = self.device.send(&packet)?;
        }
        Ok(taken)
    }
}

impl Direction {
    fn release(&mut self) {
        if let Some((_, packet)) = self.held.take() {
            self.due.push_back(packet);
        }
    }
}

impl Device for Damaging {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        if self.damage == Damage::NONE {
            return self.device.receive(buffer);
        }
        loop {
            if let Some(packet) = self.directions[0].due.pop_front() {
                buffer[..packet.len()].copy_from_slice(&packet);
                return Ok(Some(packet.len()));
            }
            match self.device.receive(buffer)? {
                Some(length) => self.pass(0, buffer[..length].to_vec()),
                None => {
                    // Nothing follows that a held one could wait for.
                    self.directions[1].release();
                    self.send_due()?;
                    if self.directions[0].held.is_none() {
                        return Ok(None);
                    }
                    self.directions[0].release();
                }
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> Result<bool, Error> {
        if self.damage == Damage::NONE {
            return self.device.send(packet);
        }
        self.pass(1, packet.to_vec());
        self.send_due()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.device.fd()
    }
}
