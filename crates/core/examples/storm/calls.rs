//! Calls and segments for a connection: mostly what a peer and an application could do, at times anything.

use crate::endpoint::{Call, Input, Raw, play};
use crate::{Draw, Storm};
use fleetfoot_core::packet::Flags;

#[derive(Default)]
pub(crate) struct Calls {
    calls: u64,
}

impl Storm for Calls {
    fn play(&mut self, seed: u64, index: u64) {
        let input = input(&mut Draw::new(seed, index));
        self.calls += input.calls.len() as u64;
        play(&input);
    }

    fn summary(&self) -> String {
        format!("{} calls", self.calls)
    }
}

fn input(draw: &mut Draw) -> Input {
    let passive = draw.once_in(2);
    let mut syn = raw(draw);
    // What the SYN offers besides.
    let offers = [Flags::TIMESTAMPS, Flags::MSS, Flags::SCALE, Flags::SACK_PERMITTED];
    let offered = offers
        .into_iter()
        .filter(|_| !draw.once_in(3))
        .fold(0, |all, flag| all | flag.0);
    syn.flags |= offered;
    let count = 2 + draw.below(30) as usize;
    let mut calls = Vec::with_capacity(count);
    if !passive && !draw.once_in(16) {
        let syn_ack = Raw {
            ack: 0,
            far: false,
            payload: 0,
            flags: Flags::SYN.0 | Flags::ACK.0 | offered,
            ..raw(draw)
        };
        calls.push(Call::Segment(syn_ack));
    }
    while calls.len() < count {
        calls.push(call(draw, offered));
    }
    Input {
        profile: draw.below(6) as u8,
        passive,
        syn,
        calls,
    }
}

fn call(draw: &mut Draw, offered: u16) -> Call {
    match draw.below(64) {
        0..=35 => {
            let mut raw = raw(draw);
            if !draw.once_in(32) {
                raw.flags = raw.flags & !Flags::TIMESTAMPS.0 | offered & Flags::TIMESTAMPS.0;
            }
            Call::Segment(raw)
        }
        36..=41 => Call::Timeout,
        42..=45 => Call::Wait {
            us: draw.scaled(0, 32) as u32,
        },
        46..=53 => Call::Write {
            bytes: draw.scaled(0, 24) as u32,
            more: draw.once_in(8),
        },
        54..=60 => Call::Read {
            bytes: draw.scaled(0, 32) as u32,
        },
        61 | 62 => Call::Shutdown {
            write: !draw.once_in(4),
        },
        _ if draw.once_in(4) => Call::Abort,
        _ => Call::Close,
    }
}

fn raw(draw: &mut Draw) -> Raw {
    let near = |draw: &mut Draw| match draw.below(8) {
        0..=3 => 0,
        4 => 1448 * (draw.below(12) as i16 - 2),
        5 => draw.below(5) as i16 - 2,
        6 => draw.below(4096) as i16,
        _ => draw.next() as i16,
    };
    let flags = match draw.below(64) {
        0..=39 => Flags::ACK,
        40..=47 => Flags::ACK.with(Flags::PSH),
        48..=51 => Flags::ACK.with(Flags::ECE),
        52 | 53 => Flags::ACK.with(Flags::CWR),
        54..=56 => Flags::ACK.with(Flags::FIN),
        57 => Flags::ACK.with(Flags::URG),
        58 => Flags::SYN,
        59 => Flags::RST,
        60 => Flags::ACK.with(Flags::CORRUPT),
        _ => Flags(draw.next() as u16),
    };
    Raw {
        seq: near(draw),
        ack: match draw.below(4) {
            0 => near(draw),
            1 => 0,
            _ => 1448 * draw.below(10) as i16,
        },
        far: draw.once_in(64),
        tsval: draw.scaled(4, 32) as u32,
        tsecr: draw.scaled(4, 32) as u32,
        options: [0; 6].map(|_: i16| match draw.below(4) {
            0 => near(draw),
            _ => 1448 * draw.below(12) as i16,
        }),
        payload: if draw.once_in(2) {
            0
        } else {
            draw.scaled(1, 12) as u16
        },
        window: draw.scaled(0, 16) as u16,
        urgent: draw.below(3000) as u16,
        flags: flags.0,
        tos: draw.below(4) as u8,
        sack_blocks: draw.below(5) as u8,
    }
}
