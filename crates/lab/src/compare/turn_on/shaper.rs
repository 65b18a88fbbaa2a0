//! Where a queue is changed: at the port that sends, or, where that is a modem or a device of the provider, by a shaper in
//! one's own router that sends a little slower, so that packets wait there instead.
//!
//! The margin is what OpenWrt's guide to SQM leaves of a measured rate, 5 %. Arrivals get 10 %: they have passed the queue of the
//! provider already, and the shaper can only make senders slow down, so it needs room for that queue to drain. Mobile lines
//! get the 15 % that the same guide leaves of a rate nobody has measured.

mod held;

use super::super::place::Place;
use super::super::{Plan, Planned};
use super::carried::Carried;
use super::htb::{arrivals, direct, direct_nearest};
use super::line::{self, Access, Shaped};
use super::queues::{Discipline, cake_needs};
use super::router::bridge;
use super::{memory_beyond, with_queue};
use crate::result::Instruction;
use crate::scenario::Medium;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::{LinkRate, LinkSpec};

/// What to do at `place` for the queue that `planned` has there. `check` says what to measure; its argument is whether flows have
/// queues of their own.
pub(super) fn at_place(
    plan: &Plan,
    planned: &Planned,
    place: &Place,
    check: impl Fn(bool) -> Option<String>,
    carried: Option<Carried>,
) -> Vec<Instruction> {
    let Some(mut here) = Here::new(plan, planned, place) else {
        return Vec::new();
    };
    let Here {
        link, rate, medium, ..
    } = here;
    here.check = check(Discipline::of(link, rate).fair);
    here.carried = carried;
    let (mut found, _) = here.instructions();
    if let Some(other) = Discipline::of(link, rate).stands_in {
        // A switch that does not run Linux may well have the discipline itself.
        let typed = |one: &&mut Instruction| !one.commands.is_empty() && medium != Some(Medium::Switch);
        for one in found.iter_mut().filter(typed) {
            one.nearest.get_or_insert_with(|| other.to_owned());
        }
    }
    for near in found.iter_mut().filter_map(|one| one.nearest.as_mut()) {
        *near = with_queue(planned, near);
    }
    found
}

/// What the shaper for the queue that `planned` has at `place`, which `carried` crossed, sends into the line; `None`: there is none.
pub(super) fn shaped_at(
    plan: &Plan,
    planned: &Planned,
    place: &Place,
    carried: Option<Carried>,
) -> Option<Shaped> {
    let mut here = Here::new(plan, planned, place)?;
    here.carried = carried;
    here.instructions().1
}

/// Whether the queue at `place` is had by a shaper beside a line whose rate nobody can write into a command.
pub(super) fn follows_at(plan: &Plan, planned: &Planned, place: &Place) -> bool {
    let here = Here::new(plan, planned, place);
    here.is_some_and(|here| here.rate.is_none() && here.medium.and_then(line::access).is_some())
}

/// A queue of the network and what is known of it.
struct Here<'a> {
    plan: &'a Plan,
    place: &'a Place,
    /// As the variant has it.
    link: &'a LinkSpec,
    /// Its rate, where that is constant and limited.
    rate: Option<Rate>,
    medium: Option<Medium>,
    /// Whether that rate is without what a line of DSL takes for itself.
    net: bool,
    check: Option<String>,
    /// What crossed it in the simulation of the variant.
    carried: Option<Carried>,
}

impl<'a> Here<'a> {
    /// The queue that `planned` has at `place`, with nothing measured.
    fn new(plan: &'a Plan, planned: &'a Planned, place: &'a Place) -> Option<Here<'a>> {
        let &index = place.links.first()?;
        let link = planned.resolved.spec.links.get(index)?;
        let info = plan.described.links_info.get(index);
        Some(Here {
            plan,
            place,
            link,
            rate: match link.rate {
                LinkRate::Constant(rate) if rate != Rate::UNLIMITED => Some(rate),
                LinkRate::Constant(_) | LinkRate::Trace { .. } => None,
            },
            medium: info.and_then(|info| info.medium),
            net: info.and_then(|info| info.rate_is_net).unwrap_or(false),
            check: None,
            carried: None,
        })
    }

    /// What to do here, and what the shaper among it sends into the line, if there is one.
    fn instructions(&self) -> (Vec<Instruction>, Option<Shaped>) {
        let alone = |instruction| (vec![instruction], None);
        match self.medium {
            Some(Medium::Wifi) => alone(self.radio()),
            Some(medium @ (Medium::Ethernet | Medium::Switch | Medium::Host)) => {
                let Some(rate) = self.rate else {
                    return alone(self.port());
                };
                // Lines to a provider are sold at rates of ports too.
                let sold = medium == Medium::Ethernet && rate.bps() <= 1_000_000_000;
                if line::is_port_rate(rate) && !sold {
                    return alone(self.port());
                }
                let (limited, shaped) = self.limited(rate);
                let port = line::is_port_rate(rate).then(|| self.port_of_that_speed(rate));
                (port.into_iter().chain([limited]).collect(), Some(shaped))
            }
            Some(medium) => match line::access(medium) {
                Some(access) => {
                    let (instruction, shaped) = self.modem(&access);
                    (vec![instruction], shaped)
                }
                None => alone(self.port()),
            },
            None => self.unknown(),
        }
    }

    fn instruction(&self, device: String, commands: Vec<String>, why: String, needs: String) -> Instruction {
        Instruction {
            place: self.place.described(),
            device,
            commands,
            why,
            needs,
            check: self.check.clone(),
            nearest: None,
            margin: None,
        }
    }

    /// The variant's queue, sent at `rate`, in place of the one described; `at_port`: directly at a port, without a shaper.
    fn discipline(&self, rate: Option<Rate>, at_port: bool) -> Discipline {
        let discipline = match at_port {
            true => Discipline::at_port(self.link, rate),
            false => Discipline::of(self.link, rate),
        };
        let links = &self.plan.described.spec.links;
        match self.place.links.first().and_then(|&index| links.get(index)) {
            Some(before) => discipline.instead_of(before, self.link, at_port),
            None => discipline,
        }
    }

    fn node(&self, id: fleetfoot_sim::spec::NodeId) -> &str {
        self.plan
            .described
            .spec
            .nodes
            .get(id.0 as usize)
            .map_or("the other end", |node| node.name.as_str())
    }

    /// The rate as people say it.
    fn speed(&self) -> String {
        self.rate
            .map_or_else(|| String::from("a rate that varies"), |rate| rate.to_string())
    }

    /// Whether packets leave the user's side here: `None` where the scenario does not say which end that is. In a dumbbell the
    /// users stand on the right unless the label of the link says that it goes up or down.
    fn outward(&self) -> Option<bool> {
        let says = |word: &str| {
            self.place
                .name
                .split(|letter: char| !letter.is_alphanumeric())
                .any(|part| part == word)
        };
        match (
            says("uplink") || says("upload"),
            says("downlink") || says("download"),
        ) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => (self.plan.described.network == "dumbbell").then_some(!self.place.forward),
        }
    }

    /// In front of a modem whose end nobody named: the device that sends into the line.
    fn sending(&self, access: &Access, rate: Rate) -> (Instruction, Shaped) {
        let device = format!(
            "the router that sends into this line ({}), in front of {}",
            self.node(self.link.from),
            access.modem
        );
        let reason = "Packets wait in the device that holds the line to its rate.";
        self.shaped(device, reason, rate, true, if access.variable { 85 } else { 95 })
    }

    /// Directly at the port that sends.
    fn port(&self) -> Instruction {
        let discipline = self.discipline(self.rate, true);
        let [from, to] = [self.link.from, self.link.to].map(|id| self.node(id));
        let device = match (self.place.links.len(), self.medium) {
            (1, Some(Medium::Switch)) => format!("the port of switch {from} towards {to}"),
            (1, Some(Medium::Host)) => format!("host {from}, its own network interface"),
            (1, _) => format!("{from}, its port towards {to}"),
            (count, Some(Medium::Host)) => {
                format!("each of the {count} hosts like {from}, its own network interface")
            }
            (count, _) => format!("each of the {count} ports like that of {from} towards {to}"),
        };
        let commands = vec![direct(&discipline).unwrap_or_else(|| bridge(self.link, None, true))];
        let why = format!(
            "Packets wait in front of this port, which sends at {}, so the queue is changed right there: {}.",
            self.speed(),
            discipline.does
        );
        let mut needs = needs(&discipline, &direct_nearest(&discipline));
        if self.medium == Some(Medium::Switch) {
            needs.push_str(&format!(
                " The command is for a switch that runs Linux and queues in it; of others ask: {}.",
                discipline.elsewhere
            ));
            needs.extend(memory_beyond(self.plan, self.link, self.place));
        }
        self.instruction(device, commands, why, needs)
    }

    /// A port whose own speed is another: something behind it holds the line to the rate.
    fn limited(&self, rate: Rate) -> (Instruction, Shaped) {
        let [from, to] = [self.link.from, self.link.to].map(|id| self.node(id));
        let what = match self.medium {
            Some(Medium::Host) => format!("host {from}"),
            Some(Medium::Switch) => format!("the port of switch {from} towards {to}"),
            _ => format!("your router ({from}), the port of this line"),
        };
        let reason = if line::is_port_rate(rate) {
            format!(
                "If the port is faster than {rate} (ethtool eth0 shows its speed), some device behind this one holds the line to that rate, and packets wait there."
            )
        } else {
            format!(
                "No network port runs at {rate} by itself: some device behind this one holds the line to it, and packets wait there."
            )
        };
        self.shaped(what, &reason, rate, true, 95)
    }

    /// A port of the line's own rate.
    fn port_of_that_speed(&self, rate: Rate) -> Instruction {
        let mut port = self.port();
        port.why = format!(
            "If the port itself runs at {rate} (ethtool eth0 shows its speed), {}",
            uncapitalised(&port.why)
        );
        port
    }

    /// In front of a modem, or behind it.
    fn modem(&self, access: &Access) -> (Instruction, Option<Shaped>) {
        let up = match (self.outward(), self.rate) {
            (Some(up), _) => up,
            (None, Some(rate)) => {
                let (instruction, shaped) = self.sending(access, rate);
                return (instruction, Some(shaped));
            }
            (None, None) => !self.place.forward,
        };
        let device = if up {
            format!("your router, in front of {}", access.modem)
        } else {
            format!("your router, where packets arrive from {}", access.modem)
        };
        let holder = if up { access.modem } else { access.provider };
        let Some(rate) = self.rate else {
            return (self.varying(device, holder), None);
        };
        let reason = if up {
            format!("Packets wait in {holder}, where you cannot log in.")
        } else {
            format!("Packets wait in {holder}, which is not yours.")
        };
        let share = match (access.variable, up) {
            (true, _) => 85,
            (false, true) => 95,
            (false, false) => 90,
        };
        let (mut instruction, shaped) = self.shaped(device, &reason, rate, up, share);
        if access.variable {
            instruction.needs.push_str(
                " The rate of a mobile line changes from moment to moment: this holds only while the line gives more than that; the script cake-autorate follows it.",
            );
        }
        if !up {
            instruction.needs.push_str(&format!(
                " Whoever runs {holder} can change its queue itself, without the margin."
            ));
        }
        (instruction, Some(shaped))
    }

    /// A line whose rate nobody can write into a command.
    fn varying(&self, device: String, holder: &str) -> Instruction {
        let discipline = Discipline::of(self.link, None);
        let shaper = match self.link.queue {
            "cake" => {
                String::from("a shaper has to follow it, and cake is the queue for which that can be had")
            }
            other => format!(
                "a shaper with a fixed rate would be too slow or have no effect, and none that follows the rate can be had with {other}"
            ),
        };
        let why = format!(
            "Packets wait in {holder}, where you cannot log in, and the rate changes from moment to moment: {shaper}. Simulated as if {holder} itself had this queue; a shaper next to it, which learns the rate only after a while, gets a part of this."
        );
        let cake = cake_needs(None);
        let (commands, needs) = if self.place.forward && discipline.shapes {
            let arguments = discipline.arguments.unwrap_or_default();
            let shaped = arguments.replacen("cake", "cake autorate-ingress", 1);
            let commands = vec![arrivals(&format!(
                "tc qdisc replace dev $IFB root {shaped} nat ingress"
            ))];
            let needs = format!(
                "{cake} autorate-ingress estimates the rate from the packets that arrive and shapes a little below that, so it follows the line with a delay and only where packets arrive. Instead of it, the script cake-autorate (OpenWrt) measures round-trip times and sets the rate of cake."
            );
            (commands, needs)
        } else {
            let nearest = match self.link.queue {
                "cake" => String::new(),
                other => format!(", which is nearest to {other} here"),
            };
            let needs = match self.place.forward {
                true => format!(
                    "Where packets arrive, cake can estimate the rate itself (autorate-ingress){nearest}. {cake}"
                ),
                false => format!(
                    "The script cake-autorate (OpenWrt) measures round-trip times and sets the rate of cake{nearest}; no option of cake alone does it in this direction. {cake}"
                ),
            };
            (Vec::new(), needs)
        };
        let mut instruction = self.instruction(device, commands, why, needs);
        instruction.nearest = (self.link.queue != "cake").then(|| String::from("cake"));
        instruction
    }

    /// A radio: the queue is in the driver, which knows what each station gets.
    fn radio(&self) -> Instruction {
        let discipline = Discipline::of(self.link, self.rate);
        let device = if self.place.forward {
            "the access point, its radio driver"
        } else {
            "the computer or phone itself, its radio driver"
        };
        let why = format!(
            "Packets wait in the driver of the radio, and its rate changes with every packet: a shaper with a fixed rate cannot stand in front of it. In the driver: {}.",
            discipline.does
        );
        let needs = if self.link.queue == "fq-codel" {
            String::from(
                "Nothing to type: Linux has FQ-CoDel in its wireless layer (mac80211) from 4.10 on for drivers that use it (ath9k, ath10k, mt76, newer iwlwifi). Choose such a device; iw phy phy0 get txq shows these queues.",
            )
        } else {
            format!(
                "{} is in no driver of a radio. The nearest is FQ-CoDel in Linux's wireless layer (mac80211), from 4.10 on for ath9k, ath10k, mt76 and newer iwlwifi: nothing to type; iw phy phy0 get txq shows its queues.",
                self.link.queue
            )
        };
        let mut instruction = self.instruction(device.to_owned(), Vec::new(), why, needs);
        instruction.nearest = (self.link.queue != "fq-codel").then(|| String::from("fq-codel"));
        instruction
    }

    /// Nobody said what kind of line it is: at the port, and the shaper for the case that a modem stands behind it. An access
    /// line shows by its rates; there the shaper comes first.
    fn unknown(&self) -> (Vec<Instruction>, Option<Shaped>) {
        let mut port = self.port();
        // A host's own interface has no modem of yours.
        let nodes = &self.plan.described.spec.nodes;
        let host = nodes.get(self.link.from.0 as usize).is_some_and(|node| node.host);
        let Some(rate) = self.rate.filter(|rate| !host && rate.bps() <= 2_500_000_000) else {
            return (vec![port], None);
        };
        let access = self.uneven() || !line::is_port_rate(rate);
        port.why = format!(
            "If this device itself sends at {rate}, {}",
            uncapitalised(&port.why)
        );
        let Some(up) = self.outward() else {
            // A line between two routers of a larger network: whoever sends into it shapes.
            return match (access, self.limited(rate)) {
                (true, (limited, shaped)) => (vec![limited, port], Some(shaped)),
                (false, _) => (vec![self.port()], None),
            };
        };
        let device = if up {
            "your router, in front of the modem"
        } else {
            "your router, where packets arrive from the modem"
        };
        let reason = if up {
            "If a modem stands between your router and this line, packets wait in the modem, where you cannot log in."
        } else {
            "If this line comes from a provider, packets wait in the provider's device, which is not yours."
        };
        let (mut shaper, shaped) = self.shaped(device.to_owned(), reason, rate, up, if up { 95 } else { 90 });
        shaper
            .needs
            .push_str(" Write medium = \"docsis\" (or adsl, vdsl, gpon, ...) into the link of the scenario and the command fits the line.");
        let both = if access {
            vec![shaper, port]
        } else {
            vec![port, shaper]
        };
        (both, Some(shaped))
    }

    /// Whether the two directions differ in rate, as those of lines to homes do.
    fn uneven(&self) -> bool {
        let places = self.plan.places.iter();
        places
            .filter(|other| other.link == self.place.link)
            .any(|other| other.rate != self.place.rate)
    }
}

/// `needs` of the discipline, with what its limit stands for and the nearest that there is.
fn needs(discipline: &Discipline, nearest: &Option<String>) -> String {
    let nearest = nearest
        .as_ref()
        .map(|command| format!("The nearest, with results of its own: {command}."));
    let mut sentences = discipline.needs.clone();
    for more in [&discipline.room, &nearest].into_iter().flatten() {
        sentences.push(' ');
        sentences.push_str(more);
    }
    sentences
}

/// A sentence that goes on after a comma.
fn uncapitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
