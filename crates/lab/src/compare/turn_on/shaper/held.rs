//! A shaper at a share of the line's rate: its command, what it counts with each packet, and how much less the line carries with it.

use super::super::super::words;
use super::super::htb::shaper;
use super::super::line::{self, Framing, Shaped, tc_rate};
use super::super::queues::Discipline;
use super::super::router::bridge;
use super::{Here, needs};
use crate::result::Instruction;
use crate::scenario::Medium;
use fleetfoot_core::parameter::Value;
use fleetfoot_core::units::Rate;

impl Here<'_> {
    /// A shaper at `percent` of `rate` with the queue behind it, and what it sends into the line.
    pub(super) fn shaped(
        &self,
        device: String,
        reason: &str,
        rate: Rate,
        out: bool,
        percent: u64,
    ) -> (Instruction, Shaped) {
        let most = match self.parameter("bandwidth") {
            Some(Value::Rate(bandwidth)) => bandwidth.bps(),
            _ => u64::MAX,
        };
        let framing = line::framing(self.medium, self.link.framing);
        // Commands count cells and PTM, so they are given shares of the line's own rate.
        let own = if self.net { framing.of_line(rate) } else { rate };
        let shaped = Rate::from_bps((u128::from(own.bps()) * u128::from(percent) / 100) as u64)
            .min(Rate::from_bps(most));
        let discipline = self.discipline(Some(shaped), false);
        let commands = match &discipline.arguments {
            Some(arguments) => shaper(arguments, &discipline, &framing, self.link, shaped, out),
            None => vec![bridge(self.link, Some((shaped, &framing)), out)],
        };
        let nearest = discipline
            .nearest
            .as_ref()
            .and_then(|nearest| shaper(nearest, &discipline, &framing, self.link, shaped, out).pop());
        let counted = if framing.atm {
            format!(
                "{} counts the {} bytes and the cells that the line adds to a packet",
                framing.cake, framing.overhead
            )
        } else if matches!(self.medium, Some(Medium::Cellular | Medium::Satellite))
            && framing.overhead > self.link.framing
        {
            format!(
                "{} counts {} bytes with each packet, as on Ethernet, since what this line adds is not known",
                framing.cake, framing.overhead
            )
        } else {
            format!(
                "{} counts the {} bytes that the line adds to a packet",
                framing.cake, framing.overhead
            )
        };
        let carried = if framing.ptm && !discipline.shapes {
            let written = tc_rate(framing.carried(shaped));
            format!("; of 65 bytes of this line 64 carry packets, hence the rate {written}")
        } else {
            String::new()
        };
        // A file of the router counts cells on average.
        let mean = discipline.arguments.is_none();
        let described = f64::from(self.link.mtu + self.link.framing);
        let counts = framing.counted(self.link.mtu, mean);
        let left = |described: f64, counts: f64| shaped.bps() as f64 / rate.bps() as f64 * described / counts;
        let full = 1.0 - left(described, counts);
        let of_all = self.carried.as_ref().map(|carried| {
            let in_scenario = carried.bytes(|size| size + f64::from(self.link.framing));
            let counted = carried.bytes(|size| framing.counted(size.round() as u32, mean));
            (
                carried,
                in_scenario / carried.packets(),
                counted / carried.packets(),
            )
        });
        // Where packets are small, what is counted beside them weighs more.
        let of_all = of_all
            .filter(|(_, described, counts)| 1.0 - left(*described, *counts) >= full + words::LEAST_MARGIN);
        let margin = of_all.map_or(full, |(_, described, counts)| 1.0 - left(described, counts));
        let simulated = match of_all {
            Some((carried, described, counts)) => format!(
                " Packets here have {:.0} bytes on average: they take {counts:.0} bytes of the rate so, and {described:.0} in the scenario (`framing`), and the line carries {:.1} % of what was simulated.",
                carried.bytes(|size| size) / carried.packets(),
                100.0 * (1.0 - margin)
            ),
            None if counts > described + 0.5 => format!(
                " A full packet of {} bytes takes {counts:.0} bytes of the rate so, and {described:.0} in the scenario (`framing`): the line carries {:.1} % of what was simulated.",
                self.link.mtu,
                100.0 * (1.0 - margin)
            ),
            None => String::new(),
        };
        let whose = match self.net {
            true => " (the line's own rate)",
            false => "",
        };
        // Who has left the cells out of the rate, as of an older note, would get them taken off twice.
        let unsaid = if framing.atm && self.link.framing > 0 && !self.net {
            format!(
                " {rate} is taken for the line's own rate: if it is 48/53 of that already, without the cells, write rate_is_net = true into the link, and the command gets {}.",
                tc_rate(Rate::from_bps(
                    (u128::from(framing.of_line(rate).bps()) * u128::from(percent) / 100) as u64
                ))
            )
        } else {
            String::new()
        };
        let why = format!(
            "{reason} A router that {} {}, {percent} % of {}{whose}, makes them wait in itself instead, where {}; the margin keeps the other queue empty, since the rate is never known exactly, and {}{carried}.{simulated}{unsaid}",
            if out { "sends at" } else { "takes them at" },
            line::whole(shaped),
            line::whole(own),
            discipline.does,
            if discipline.shapes {
                counted
            } else {
                counted.replace(&framing.cake, "overhead")
            },
        );
        let mut needs = needs(&discipline, &nearest);
        needs.push_str(&match discipline.arguments {
            Some(_) => self.names(&discipline, &framing),
            None => String::from(
                " Put the names of its ports in place of eth1 (towards your network) and eth0 (towards the line).",
            ),
        });
        if out && !discipline.shapes && discipline.arguments.is_some() {
            needs.push_str(" What this device itself sends by TCP still leaves in merged packets, and HTB counts the line's bytes once for each: ip link set dev eth0 gso_max_segs 1 ends that (docs/turn-on.md).");
        }
        let instruction = Instruction {
            margin: Some(margin.max(0.0)),
            ..self.instruction(device, commands, why, needs)
        };
        let sent = framing.as_a_link(shaped, mean, self.carried.as_ref(), self.link.mtu);
        (instruction, sent)
    }

    /// Which names and numbers of the commands for `tc` are the user's to change.
    fn names(&self, discipline: &Discipline, framing: &Framing) -> String {
        // A PPP interface has no Ethernet header that is counted already, and PPPoE adds 8 bytes that only DSL's framing has.
        let pppoe = if framing.with_pppoe { 0 } else { 8 };
        let there = i64::from(framing.overhead) + pppoe;
        let beyond = framing.beyond_ethernet();
        let ppp = match (discipline.shapes, self.medium) {
            (_, Some(Medium::Host | Medium::Switch)) => String::new(),
            (true, _) if pppoe == 0 => String::from(" (a router that dials in by PPPoE: the PPP interface)"),
            (true, _) => format!(
                " (a router that dials in by PPPoE: the PPP interface, with {} instead of {})",
                framing.with_overhead(there),
                framing.cake
            ),
            (false, _) => format!(
                " (a router that dials in by PPPoE: the PPP interface, with overhead {there} instead of {beyond})"
            ),
        };
        let port = match self.medium {
            Some(Medium::Host) => "the host's network interface",
            Some(Medium::Switch) => "the switch's port",
            _ => "your router's port to the line",
        };
        let mut text = format!(" Put the name of {port} in place of eth0{ppp}. It lasts until a restart");
        text.push_str(match self.medium {
            Some(Medium::Host | Medium::Switch) => ".",
            _ => "; on OpenWrt the package luci-app-sqm keeps such settings.",
        });
        if let Some((keyword, bytes)) = framing.without_pppoe {
            let exact = if discipline.shapes {
                String::from(keyword)
            } else {
                format!("overhead {}", i64::from(bytes) - line::ETHERNET)
            };
            text.push_str(&format!(
                " On a line without PPPoE (no user name to dial in with) {exact} is exact."
            ));
        }
        text
    }

    fn parameter(&self, name: &str) -> Option<Value> {
        let values = &self.link.queue_values;
        let known = values.table().iter().any(|parameter| parameter.name == name);
        known.then(|| values.value(name))
    }
}
