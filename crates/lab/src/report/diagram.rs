//! A sequence diagram of one flow: sender on the left, receiver on the right, time downwards, as SVG.
//!
//! Arrows are segments: new data, retransmissions, probes, bundles (packets that carry older data along), acknowledgments;
//! a cross is a loss. On the sender's side stand the timers that fired. Every arrow says what it carries in words, colours
//! only repeat it.

mod steps;

use crate::scenario::Resolved;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Flags, Packet, Segment};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::LinkIndex;
use std::fmt::Write;

/// Follows one connection of a group, counted from 0 in order of opening.
#[derive(Clone, Debug)]
pub struct Diagram {
    group: u32,
    /// Its number in the group.
    number: u32,
    /// Connections of the group that were opened.
    opened: u64,
    /// By link: whether a host is at its far end.
    last: Vec<bool>,
    /// Flows of data and acknowledgments, once it is open; then whether it is over.
    flows: Option<[FlowId; 2]>,
    over: bool,
    /// Where the stream begins, and the highest offset sent.
    origin: SeqNumber,
    highest: u32,
    /// The first [`MOST_ARROWS`].
    arrows: Vec<Arrow>,
    /// Indices of those that neither arrived nor were dropped yet.
    underway: Vec<usize>,
    /// All that were sent.
    segments: u64,
    timers: Vec<(Instant, &'static str)>,
    counted: [u32; 2],
}

#[derive(Clone, Debug)]
struct Arrow {
    sent: Instant,
    arrived: Option<Instant>,
    dropped: Option<Instant>,
    /// From the data receiver.
    back: bool,
    segment: Segment,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Handshake,
    Data,
    Again,
    Probe,
    Bundle,
    Ack,
}

impl Diagram {
    /// The diagram of connection `number` of group `group` in a run of `resolved`.
    pub fn new(resolved: &Resolved, group: u32, number: u32) -> Diagram {
        let host = |link: &fleetfoot_sim::spec::LinkSpec| resolved.spec.nodes[link.to.0 as usize].host;
        Diagram {
            group,
            number,
            opened: 0,
            last: resolved.spec.links.iter().map(host).collect(),
            flows: None,
            over: false,
            origin: SeqNumber(0),
            highest: 0,
            arrows: Vec::new(),
            underway: Vec::new(),
            segments: 0,
            timers: Vec::new(),
            counted: [0; 2],
        }
    }

    /// Whether the flow took place.
    pub fn is_empty(&self) -> bool {
        self.arrows.is_empty()
    }

    /// Connections that its group opened in all.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    fn side(&self, flow: FlowId) -> Option<bool> {
        let flows = self.flows.filter(|_| !self.over)?;
        flows
            .iter()
            .position(|known| *known == flow)
            .map(|side| side == 1)
    }

    /// The arrow of a segment that arrived or was dropped: the first that is under way.
    fn take(&mut self, back: bool, segment: &Segment) -> Option<&mut Arrow> {
        let key = |segment: &Segment| {
            (
                segment.seq,
                segment.ack,
                segment.payload,
                segment.tsval,
                segment.kind_sack,
            )
        };
        let position = self.underway.iter().position(|&index| {
            let arrow = &self.arrows[index];
            arrow.back == back && key(&arrow.segment) == key(segment)
        })?;
        let index = self.underway.remove(position);
        self.arrows.get_mut(index)
    }

    /// The picture.
    pub fn svg(&self, title: &str) -> String {
        let begin = self.arrows.first().map_or(Instant::ZERO, |arrow| arrow.sent);
        let arrows = &self.arrows;
        let frame = self.frame(begin, title);
        let Frame {
            left, right, width, ..
        } = frame;
        let ends = arrows.iter().map(|arrow| {
            arrow
                .arrived
                .or(arrow.dropped)
                .unwrap_or(arrow.sent)
                .max(arrow.sent)
        });
        let end = ends.max().unwrap_or(begin);
        let span = end.since(begin).as_secs_f64().max(1e-6);
        let height = (arrows.len() as f64 * 16.0).clamp(240.0, 6000.0);
        let y = |at: Instant| 76.0 + at.since(begin).as_secs_f64() / span * height;
        let mut svg = String::new();
        let total = height + 110.0;
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {total:.0}\" width=\"{width:.0}\" height=\"{total:.0}\" font-family=\"sans-serif\" font-size=\"10\" role=\"img\">\n<title>{0}</title>\n<rect width=\"{width:.0}\" height=\"{total:.0}\" fill=\"#ffffff\"/>\n<text x=\"20\" y=\"22\" font-size=\"13\">{0}</text>\n",
            escape(title)
        );
        for (x, name) in [(left, "sender"), (right, "receiver")] {
            let _ = writeln!(
                svg,
                "<text x=\"{x:.0}\" y=\"56\" text-anchor=\"middle\" font-size=\"12\">{name}</text><line x1=\"{x:.0}\" y1=\"62\" x2=\"{x:.0}\" y2=\"{:.1}\" stroke=\"#444444\"/>",
                height + 90.0
            );
        }
        let mut legend = left;
        for (what, name) in
            [What::Data, What::Again, What::Probe, What::Bundle, What::Ack].map(|what| (what, what.name()))
        {
            let _ = writeln!(
                svg,
                "<line x1=\"{legend}\" y1=\"34\" x2=\"{:.0}\" y2=\"34\" stroke=\"{}\" stroke-width=\"2\"/><text x=\"{:.0}\" y=\"37\">{name}</text>",
                legend + 18.0,
                what.colour(),
                legend + 22.0
            );
            legend += 92.0;
        }
        let (mut low, mut labels) = ([f64::MIN; 2], String::new());
        for arrow in arrows {
            self.draw(&mut svg, &mut labels, arrow, &y, &mut low, frame);
        }
        let mut below = f64::MIN;
        for (at, name) in self.timers.iter().filter(|(at, _)| *at <= end) {
            let place = y(*at).max(below + 11.0);
            below = place;
            let _ = writeln!(
                svg,
                "<circle cx=\"{left:.0}\" cy=\"{:.1}\" r=\"3.5\" fill=\"#b00020\"/><text x=\"8\" y=\"{:.1}\" fill=\"#b00020\">{name} {}</text>",
                y(*at),
                place + 3.0,
                milliseconds(at.since(begin))
            );
        }
        svg.push_str(&labels);
        if (arrows.len() as u64) < self.segments {
            let _ = writeln!(
                svg,
                "<text x=\"20\" y=\"{:.0}\">the first {MOST_ARROWS} of {} segments</text>",
                height + 102.0,
                self.segments
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw(
        &self,
        svg: &mut String,
        labels: &mut String,
        arrow: &Arrow,
        y: &dyn Fn(Instant) -> f64,
        low: &mut [f64; 2],
        frame: Frame,
    ) {
        let Frame {
            begin, left, right, ..
        } = frame;
        let (from, to) = if arrow.back { (right, left) } else { (left, right) };
        let lost = arrow.arrived.is_none();
        let (x2, end) = match (arrow.arrived, arrow.dropped) {
            (Some(arrived), _) => (to, arrived),
            (None, Some(dropped)) => ((from + to) / 2.0, dropped.max(arrow.sent)),
            (None, None) => ((from + to) / 2.0, arrow.sent),
        };
        let (y1, y2) = (y(arrow.sent), y(end));
        let colour = arrow.what.colour();
        let dash = if lost { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = writeln!(
            svg,
            "<line x1=\"{from:.0}\" y1=\"{y1:.1}\" x2=\"{x2:.0}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"1.4\"{dash}/>"
        );
        let toward = if arrow.back { -1.0 } else { 1.0 };
        if arrow.dropped.is_some() {
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {:.1} l8 8 m0 -8 l-8 8\" stroke=\"#b00020\" stroke-width=\"2\"/>",
                x2 - 4.0,
                y2 - 4.0
            );
        } else if !lost {
            let back = x2 - toward * 7.0;
            let _ = writeln!(
                svg,
                "<path d=\"M{x2:.0} {y2:.1} L{back:.0} {:.1} L{back:.0} {:.1} Z\" fill=\"{colour}\"/>",
                y2 - 3.0,
                y2 + 3.0
            );
        }
        // Labels stand where the arrow begins, none above another.
        let side = usize::from(arrow.back);
        let place = (y1 + 3.0).max(low[side] + 10.0);
        if place - y1 > 120.0 {
            return; // too many at one moment: the arrow stays, its words go
        }
        low[side] = place;
        let (x, anchor) = if arrow.back {
            (right + 8.0, "start")
        } else {
            (left - 8.0, "end")
        };
        let _ = writeln!(
            labels,
            "<text x=\"{x:.0}\" y=\"{place:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
            escape(&self.label(arrow, begin))
        );
    }

    /// What is written beside an arrow: when it was sent, what it carries, and whether it was lost.
    fn label(&self, arrow: &Arrow, begin: Instant) -> String {
        let words = if arrow.back {
            self.acked(arrow)
        } else {
            self.sent(arrow)
        };
        let lost = if arrow.dropped.is_some() { " lost" } else { "" };
        format!("{} {words}{lost}", milliseconds(arrow.sent.since(begin)))
    }

    /// Room for the longest label of each side, and for the timers on the left.
    fn frame(&self, begin: Instant, title: &str) -> Frame {
        let of_side = |back: bool| {
            let own = self.arrows.iter().filter(|arrow| arrow.back == back);
            own.map(|arrow| width_of(&self.label(arrow, begin)))
                .fold(0.0, f64::max)
        };
        let timers = self.timers.iter();
        let timers = timers
            .map(|(at, name)| width_of(&format!("{name} {}", milliseconds(at.since(begin)))) + 12.0)
            .fold(0.0, f64::max);
        let left = (8.0 + timers + of_side(false) + 16.0).max(230.0);
        let right = left + BETWEEN;
        let legend = left + 5.0 * 92.0;
        let title = 40.0 + 1.3 * width_of(title);
        Frame {
            begin,
            left,
            right,
            width: (right + 16.0 + of_side(true)).max(legend).max(title).max(900.0),
        }
    }

    fn sent(&self, arrow: &Arrow) -> String {
        let segment = &arrow.segment;
        let from = (segment.seq - self.origin.0).0;
        let range = format!("{from}–{}", from.wrapping_add(segment.payload));
        match arrow.what {
            What::Handshake => self.flags(segment),
            What::Data => range,
            What::Ack => String::from("ACK"),
            other => format!("{range} {}", other.word()),
        }
    }

    fn acked(&self, arrow: &Arrow) -> String {
        let segment = &arrow.segment;
        if segment.flags.contains(Flags::SYN) {
            return self.flags(segment);
        }
        let offset = |edge: SeqNumber| (edge - self.origin.0).0;
        let mut words = format!("ACK {}", offset(segment.ack));
        for index in 0..segment.sack_blocks() {
            let (left, right) = segment.sack_block(index);
            let duplicate = index == 0 && (left.0.wrapping_sub(segment.ack.0) as i32) < 0;
            let name = if duplicate { "D-SACK" } else { "SACK" };
            let _ = write!(words, " {name} {}–{}", offset(left), offset(right));
        }
        words
    }

    fn flags(&self, segment: &Segment) -> String {
        let mut words = Vec::new();
        for (flag, name) in [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::ACK, "ACK"),
        ] {
            if segment.flags.contains(flag) {
                words.push(name);
            }
        }
        words.join(" ")
    }
}

impl Observer for Diagram {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened {
                group, data, acks, ..
            } if group == self.group => {
                if self.opened == u64::from(self.number) {
                    self.flows = Some([data, acks]);
                }
                self.opened += 1;
            }
            AppEvent::Closed { data } if self.flows.is_some_and(|flows| flows[0] == data) => self.over = true,
            AppEvent::Opened { .. } | AppEvent::Relayed { .. } | AppEvent::Closed { .. } => {}
        }
    }

    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        let Some(back) = self.side(flow) else { return };
        let mut what = What::Ack;
        if segment.flags.intersects(Flags::SYN.with(Flags::RST)) {
            what = What::Handshake;
            if !back {
                self.origin = segment.seq + 1;
            }
        } else if !back && segment.payload > 0 {
            let from = (segment.seq - self.origin.0).0;
            let to = from.wrapping_add(segment.payload);
            what = match (from < self.highest, to > self.highest) {
                (true, false) => What::Again,
                (true, true) => What::Bundle,
                (false, _) => What::Data,
            };
            self.highest = self.highest.max(to);
        } else if segment.flags.contains(Flags::FIN) {
            what = What::Handshake;
        }
        self.segments += 1;
        if self.arrows.len() == MOST_ARROWS {
            return;
        }
        self.underway.push(self.arrows.len());
        self.arrows.push(Arrow {
            sent: now,
            arrived: None,
            dropped: None,
            back,
            segment: *segment,
            what,
        });
    }

    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        let Some(back) = self.side(packet.flow) else {
            return;
        };
        if self.last.get(at.0 as usize) == Some(&true)
            && let Some(arrow) = self.take(back, &packet.segment)
        {
            arrow.arrived = Some(now);
        }
    }

    fn on_drop(&mut self, now: Instant, _at: LinkIndex, packet: &Packet, _reason: DropReason) {
        if let Some(back) = self.side(packet.flow)
            && let Some(arrow) = self.take(back, &packet.segment)
        {
            arrow.dropped = Some(now);
        }
    }

    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        if self.side(flow) != Some(false) {
            return;
        }
        let stats = connection.stats();
        let counts = [stats.timeouts, stats.probes];
        if counts[0] > self.counted[0] {
            self.timers.push((now, "RTO"));
        } else if counts[1] > self.counted[1] {
            self.timers.push((now, "PTO"));
            if let Some(arrow) = self
                .arrows
                .iter_mut()
                .rfind(|arrow| !arrow.back && arrow.sent == now)
            {
                arrow.what = What::Probe;
            }
        } else {
            self.timers.push((now, "timer"));
        }
        self.counted = counts;
    }
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Handshake => "handshake",
            What::Data => "new data",
            What::Again => "sent again",
            What::Probe => "probe",
            What::Bundle => "bundle",
            What::Ack => "acknowledgment",
        }
    }

    fn word(self) -> &'static str {
        match self {
            What::Again => "again",
            What::Probe => "probe",
            What::Bundle => "bundle",
            What::Handshake | What::Data | What::Ack => "",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            What::Handshake => "#444444",
            What::Data => "#0072B2",
            What::Again => "#D55E00",
            What::Probe => "#CC79A7",
            What::Bundle => "#007a5a",
            What::Ack => "#777777",
        }
    }
}

fn milliseconds(span: Duration) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1e3)
}

/// Width of a text of size 10, a little on the wide side.
fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * 6.0
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// When the picture begins, where the sender's and the receiver's lines stand, and how wide it is.
#[derive(Clone, Copy, Debug)]
struct Frame {
    begin: Instant,
    left: f64,
    right: f64,
    width: f64,
}

/// From the sender's line to the receiver's.
const BETWEEN: f64 = 330.0;

/// Segments drawn at most.
const MOST_ARROWS: usize = 400;

#[cfg(test)]
mod tests {
    use super::Diagram;
    use crate::run::observe;
    use crate::scenario::{Scenario, Setting};
    use std::sync::atomic::AtomicBool;

    fn picture(tcp: &str, loss: &str, traffic: &str) -> String {
        drawn(tcp, loss, traffic, 0).expect("it took place")
    }

    fn drawn(tcp: &str, loss: &str, traffic: &str, number: u32) -> Option<String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = 1\naccess = {{ rate = \"1 Gbit/s\", delay = \"0 s\" }}\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"50 ms\", queue = {{ kind = \"drop-tail\", limit = \"100 packets\" }}, loss = {loss} }}\n[tcp]\nprofile = \"linux-2015\"\nnagle = false\n{tcp}\n[[traffic]]\nname = \"flow\"\n{traffic}\n[run]\nduration = \"2 s\"\n"
        );
        let scenario = Scenario::parse("diagram.toml", &text).expect("it is correct");
        let resolved = scenario.resolve(&Setting::none()).expect("it is correct");
        let mut diagram = Diagram::new(&resolved, 0, number);
        observe(&resolved.spec(1), &AtomicBool::new(false), &mut diagram).expect("it runs");
        (!diagram.is_empty()).then(|| diagram.svg("a flow & what became of it"))
    }

    #[test]
    fn a_lost_tail_shows_the_loss_the_timer_and_the_probe() {
        let transfer = "kind = \"transfer\"\nsize = \"14480 B\"\ncount = 1\narrivals = { dist = \"constant\", rate = \"4 per second\" }";
        let along = "lone_fin = false"; // a FIN behind the lost tail would show the loss sooner
        let svg = picture(along, "{ kind = \"tail\", segments = 1 }", transfer);
        assert_eq!(svg.matches("m0 -8 l-8 8").count(), 1, "one cross");
        assert_eq!(svg.matches(" lost</text>").count(), 1, "and one word");
        assert!(svg.contains("probe</text>") && svg.contains("PTO "), "{svg}");
        assert!(svg.contains("flow &amp; what"));
        let svg = picture(
            "lone_fin = false\ntail_loss_probe = \"off\"",
            "{ kind = \"tail\", segments = 1 }",
            transfer,
        );
        assert!(svg.contains(" again</text>") && svg.contains("RTO "), "{svg}");
    }

    /// Every label ends within the picture, also those with three SACK blocks, and every time has its unit.
    #[test]
    fn labels_have_room_and_times_have_a_unit() {
        let transfer = "kind = \"transfer\"\nsize = \"600 kB\"\ncount = 1\narrivals = { dist = \"constant\", rate = \"4 per second\" }";
        let svg = picture("", "{ kind = \"random\", probability = 0.1 }", transfer);
        let after = |text: &str, mark: &str| -> Option<String> {
            let from = text.find(mark)? + mark.len();
            Some(text[from..].split('"').next()?.to_owned())
        };
        let width: f64 = after(&svg, "width=\"")
            .and_then(|text| text.parse().ok())
            .expect("a width");
        let mut blocks = 0;
        for line in svg
            .lines()
            .filter(|line| line.starts_with("<text") && line.contains(" ms"))
        {
            let x: f64 = after(line, "x=\"")
                .and_then(|text| text.parse().ok())
                .expect("a place");
            let words = line.split('>').nth(1).unwrap_or("").trim_end_matches("</text");
            let room = if line.contains("\"end\"") { x } else { width - x };
            assert!(super::width_of(words) <= room, "{words} has {room} of {width}");
            blocks = blocks.max(words.matches("SACK").count());
            let time = words.trim_start_matches(|c: char| !c.is_ascii_digit());
            assert_eq!(time.split(' ').nth(1), Some("ms"), "{words}");
        }
        assert_eq!(blocks, 3, "the longest labels occur");
    }

    #[test]
    fn a_long_flow_says_how_much_of_it_is_drawn() {
        let bulk = "kind = \"transfer\"\nsize = \"1 MB\"\ncount = 1\narrivals = { dist = \"constant\", rate = \"4 per second\" }";
        let svg = picture("", "0.0", bulk);
        assert!(
            svg.contains("the first 400 of "),
            "it has more segments than are drawn"
        );
    }

    #[test]
    fn a_connection_is_chosen_by_its_number() {
        let one = "kind = \"transfer\"\nsize = { dist = \"uniform\", min = \"2 kB\", max = \"20 kB\" }\ncount = 2\narrivals = { dist = \"constant\", rate = \"4 per second\" }";
        let drawn = |number| drawn("", "0.0", one, number);
        assert_ne!(drawn(0), drawn(1));
        assert_eq!(drawn(2), None, "there are two");
    }

    #[test]
    fn bundles_are_named() {
        let thin = "kind = \"thin\"\npayload = \"100 B\"\ninterval = \"40 ms\"";
        let svg = picture("rdb = \"one\"", "{ kind = \"random\", probability = 0.1 }", thin);
        assert!(
            svg.matches(" bundle</text>").count() > 10 && svg.contains("D-SACK"),
            "{svg}"
        );
        let plain = picture("", "{ kind = \"random\", probability = 0.1 }", thin);
        assert_eq!(plain.matches(" bundle</text>").count(), 0);
    }
}
