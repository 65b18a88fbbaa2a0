//! The contracts of queue disciplines and congestion controls over random calls, for implementations from outside the tree.
//!
//! The registered ones are held to the same contracts, by the same code, in the unit tests of core.

use crate::controllers::{self, MSS, Op};
use crate::queues::{self, Bench, LINK, Operation, StrangeCall};
use fleetfoot_core::cc::{self, AnyController, CongestionKind, CubicArithmetic, HyStart};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit, LinkContext};
use fleetfoot_core::registry::Plugin;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::units::Bytes;

/// Seeds that a contract is held over.
const SEEDS: u64 = 64;

/// Holds a queue discipline with the defaults of its table, and limits drawn, to its contract: conservation, limits, work
/// conservation, order within a flow, determinism, no panic on any header or time.
///
/// # Panics
/// Where it breaks the contract; the message begins with the clause.
pub fn of_queue(plugin: &Plugin<AnyQueue, LinkContext>) {
    for seed in 0..SEEDS {
        let mut rng = Rng::for_element(seed, plugin.entry.name, "contract");
        let limit = match rng.below(3) {
            0 => Limit::Packets(1 + rng.below(59) as u32),
            1 => Limit::Bytes(Bytes(1500 + rng.below(58_500))),
            _ => Limit::Unlimited,
        };
        let mut values = Values::defaults(plugin.entry.parameters);
        values
            .set("limit", Value::Limit(limit))
            .expect("every discipline has the parameter `limit`");
        let operations: Vec<Operation> = (0..2000).map(|_| operation(&mut rng)).collect();
        let played = || {
            let queue = (plugin.build)(&values, &LINK);
            queues::play(&mut Bench::new(queue, queues::flows(30), limit), &operations)
        };
        assert_eq!(played(), played(), "G6: seed {seed} differs between two runs");
        let strange: Vec<StrangeCall> = (0..300).map(|_| strange_call(&mut rng)).collect();
        queues::strange_calls(&mut (plugin.build)(&values, &LINK), &strange, |payload| {
            payload % 64 == 0
        });
    }
}

/// Holds a congestion control with the defaults of its table to its contract ([`controllers::keeps_the_contract`]), and to
/// taking any numbers without a panic.
///
/// # Panics
/// Where it breaks the contract.
pub fn of_controller(plugin: &Plugin<AnyController, cc::Config>) {
    let name = plugin.entry.name;
    let values = Values::defaults(plugin.entry.parameters);
    for seed in 0..SEEDS {
        let mut rng = Rng::for_element(seed, name, "contract");
        let hystart = [HyStart::Off, HyStart::HyStart, HyStart::HyStartPlusPlus][rng.below(3) as usize];
        let arithmetic = [CubicArithmetic::Rfc9438, CubicArithmetic::Linux][rng.below(2) as usize];
        let config = cc::Config {
            abc_limit: (rng.below(2) == 0).then(|| 1 + rng.below(8) as u32),
            reduce_from_window: rng.below(2) == 0,
            count_segments: rng.below(2) == 0,
            cubic_arithmetic: arithmetic,
            ..controllers::config(hystart)
        };
        let ops: Vec<Op> = (0..300).map(|_| op(&mut rng)).collect();
        let build = |config: &cc::Config| (plugin.build)(&values, config);
        controllers::keeps_the_contract(name, build, &config, &ops, 1 + rng.below(499));
        let mss = 1 + rng.below(70_000);
        let config = cc::Config {
            mss: Bytes(mss),
            initial_window: Bytes(mss),
            ..controllers::config(HyStart::HyStart)
        };
        let strange: Vec<_> = (0..50)
            .map(|_| {
                (
                    rng.next_u64(),
                    rng.next_u64(),
                    rng.next_u64(),
                    rng.next_u32() as u8,
                )
            })
            .collect();
        controllers::strange_calls(&mut build(&config), mss, &strange);
    }
}

fn strange_call(rng: &mut Rng) -> StrangeCall {
    let [a, b, c, _] = rng.next_u32().to_le_bytes();
    StrangeCall {
        now: rng.next_u64(),
        arrives: rng.below(2) == 0,
        flow: rng.next_u32(),
        payload: rng.next_u32(),
        bytes: [a, b, c],
        flags: rng.next_u32() as u16,
    }
}

fn operation(rng: &mut Rng) -> Operation {
    let step_ns = match rng.below(9) {
        0 => 0,
        1 => -(rng.below(1_000_000) as i64),
        2 => rng.below(400_000_000) as i64,
        _ => rng.below(2_000_000) as i64,
    };
    let len = match rng.below(9) {
        0..4 => 1500,
        4..6 => 40,
        6..8 => 1 + rng.below(1499) as u32,
        _ => 0,
    };
    let packet = (rng.below(12) < 7).then(|| (rng.below(40) as u32, len, rng.below(4) as u8, 0));
    Operation { step_ns, packet }
}

fn op(rng: &mut Rng) -> Op {
    match rng.below(44) {
        0..2 => {
            let kind = match rng.below(8) {
                0..3 => CongestionKind::Loss,
                3 => CongestionKind::Ecn,
                4 => CongestionKind::Delay,
                5 => CongestionKind::Timeout {
                    first: rng.below(2) == 0,
                },
                6 => CongestionKind::Undo,
                _ => CongestionKind::RecoveryEnd,
            };
            Op::Congestion(kind, 1 + rng.below(199))
        }
        2 => Op::Idle(rng.below(3_000)),
        3 => Op::SetWindow(rng.below(100), (rng.below(2) == 0).then(|| 2 + rng.below(98))),
        _ => Op::Ack {
            after_us: rng.below(30_000),
            bytes: match rng.below(7) {
                0..4 => MSS,
                4..6 => 2 * MSS,
                _ => rng.below(9 * MSS),
            },
            rtt_ms: (rng.below(10) > 0).then(|| 20 + rng.below(70)),
            marked: rng.below(5) == 0,
            round: rng.below(10) == 0,
            limited: rng.below(10) > 0,
            recovering: rng.below(10) == 0,
        },
    }
}
