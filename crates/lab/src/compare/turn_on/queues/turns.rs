//! Disciplines whose flows take turns and that fill all the room they have, or count memory: cake, DRR and SFQ.

use super::{Discipline, Queue, Words, cake_needs, memory_of, tc_time};
use fleetfoot_core::parameter::Value;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::time::Duration;

impl Queue<'_> {
    /// The limit is left to cake, which counts memory and not bytes of packets; at a port it is the memory of as many full packets.
    pub(super) fn cake(&self) -> Discipline {
        let mut words = Words::new("cake besteffort");
        match self.value("isolation") {
            Some(Value::Choice(isolation)) => words.add(isolation),
            _ => words.add("triple-isolate"),
        }
        if let Some(Value::Duration(interval)) = self.value("interval")
            && interval != Duration::from_millis(100)
        {
            words.add(format!("rtt {}", tc_time(interval)));
        }
        let bytes = match self.value("limit") {
            Some(Value::Limit(Limit::Bytes(bytes))) if self.port => Some(bytes),
            _ => None,
        };
        if bytes.is_some() {
            words.add(format!(
                "memlimit {}",
                self.packets()
                    .saturating_mul(memory_of(self.mtu()))
                    .min(u64::from(u32::MAX))
            ));
        }
        let room = bytes.map(|bytes| {
            format!(
                "The limit of the scenario is {bytes}, the memory of the port, and cake counts what Linux keeps of a packet: memlimit is {} for each packet of {} bytes.",
                memory_of(self.mtu()),
                self.mtu()
            )
        });
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: None,
            does: "computers get equal shares, and each connection waits in a queue of its own, so that short and quiet ones go ahead of long transfers",
            needs: format!("{}{}", cake_needs(self.rate), self.long_interval()),
            elsewhere: String::from("fair queueing by host and flow"),
            room,
            fair: true,
            shapes: true,
        }
    }

    pub(super) fn drr(&self) -> Discipline {
        let mut words = Words::new("sfq");
        words.add(format!("limit {}", self.whole().clamp(2, 65_535)));
        if let Some(Value::Bytes(quantum)) = self.value("quantum") {
            words.add(format!("quantum {}", quantum.0.max(self.mtu())));
        }
        if let Some(Value::Integer(buckets)) = self.value("buckets")
            && buckets != 1024
        {
            words.add(format!("divisor {}", buckets.next_power_of_two().min(65_536)));
        }
        if self.value("drop") == Some(Value::Choice("head")) {
            words.add("headdrop");
        }
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: Some("sfq"),
            does: "each connection waits in a queue of its own and they take turns, so that none waits behind another's packets",
            needs: String::from(
                "Linux 3.3 or later, package iproute2: of what needs no classes sfq is the nearest to deficit round robin. Connections share its queues by a hash, and at most 127 packets of a queue wait: the mechanism sfq has these limits too.",
            ),
            elsewhere: String::from("fair queueing by flow (DRR, WFQ)"),
            room: None,
            fair: true,
            shapes: false,
        }
    }

    pub(super) fn sfq(&self) -> Discipline {
        let mut words = Words::new("sfq");
        self.limit(&mut words, 127);
        for (name, default) in [("flows", 128), ("depth", 127), ("divisor", 1024)] {
            match self.value(name) {
                Some(Value::Integer(number)) if number != default => words.add(format!("{name} {number}")),
                _ => {}
            }
        }
        self.quantum(&mut words);
        match self.value("perturb") {
            Some(Value::Duration(span)) if !span.is_zero() => {
                words.add(format!("perturb {}", span.as_millis().div_ceil(1000)));
            }
            _ => {}
        }
        if self.flag("headdrop") {
            words.add("headdrop");
        }
        Discipline {
            arguments: words.text(),
            stands_in: None,
            needs: String::from("Linux, package iproute2; depth, flows and headdrop from Linux 3.3 on."),
            ..self.drr()
        }
    }
}
