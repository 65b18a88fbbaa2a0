//! A link's table: rate, delay, queue and what else happens on the wire, both ways.

use super::document::{Node, Value};
use super::error::{Error, Place};
use super::keys::{self, Dimension};
use super::place::LinkInfo;
use super::read::{Field, Section, join};
use super::{distribution, value};
use crate::{input, plugins, workload};
use fleetfoot_core::link::OPPORTUNITY_BYTES;
use fleetfoot_core::parameter::{Value as ParameterValue, Values};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::spec::{Arq, Impairments, LinkRate, Loss};

/// A link as described, both directions.
pub(crate) struct Plan {
    pub(crate) forward: Half,
    pub(crate) back: Half,
    pub(crate) mtu: u32,
    /// Time per packet; `None`: what the node at the sending end needs.
    pub(crate) processing: Option<Duration>,
    /// Whether that is hidden; `None`: as the node at the sending end has it.
    pub(crate) overlap: Option<bool>,
}

pub(crate) struct Half {
    pub(crate) rate: LinkRate,
    pub(crate) framing: u32,
    pub(crate) delay: Duration,
    pub(crate) queue: (&'static str, Values),
    pub(crate) impairments: Impairments,
    pub(crate) info: LinkInfo,
}

impl Plan {
    /// Reads the table at `node`. Without `defaults` rate and delay must be given.
    pub(crate) fn read(node: &Node, path: &str, defaults: bool) -> Result<Plan, Error> {
        let section = Section::open(node, keys::LINK, path)?;
        let (rate_field, delay) = (section.find("rate")?, section.find("delay")?);
        if !defaults {
            for (key, field) in [("rate", &rate_field), ("delay", &delay)] {
                if field.is_none() {
                    let example = if key == "rate" {
                        "\"10 Mbit/s\""
                    } else {
                        "\"20 ms\""
                    };
                    return Err(
                        Error::at(&section.place, &join(path, key), format!("`{key}` is missing"))
                            .help(&section.place, format!("for example {key} = {example}")),
                    );
                }
            }
        }
        let rate = match &rate_field {
            Some(field) => link_rate(field)?,
            None => LinkRate::Constant(Rate::from_bps(1_000_000_000)),
        };
        let delay = delay.map_or(Ok(Duration::from_millis(1)), |field| field.duration())?;
        let mtu = section.need("mtu")?.bytes()?.get() as u32;
        let written = section.find("framing")?.map(|field| field.bytes()).transpose()?;
        let framing_at = |rate: &LinkRate| match (written, rate) {
            (Some(bytes), _) => bytes.get() as u32,
            (None, LinkRate::Trace { .. }) => TRACE_FRAMING,
            (None, LinkRate::Constant(_)) => 0,
        };
        let queue_field = section.need("queue")?;
        let mut impairments = impairments(&section)?;
        let info = LinkInfo::read(&section, None)?;
        let coded = rate;
        let rate = behind_code(&coded, &section)?;
        let queue = queue(
            &queue_field,
            Wire {
                rate: &rate,
                mtu,
                framing: framing_at(&rate),
            },
        )?;
        if let Some(reorder) = section.find("reorder")? {
            let reorder = Section::open(&reorder.node, keys::REORDER, &reorder.path)?;
            impairments.reorder = Some((
                Probability::from_f64(reorder.need("probability")?.probability()?),
                reorder.need("delay")?.duration()?,
            ));
        }
        impairments.duplicate = Probability::from_f64(section.need("duplicate")?.probability()?);
        let reverse = section.need("reverse")?;
        let reverse = Section::open(&reverse.node, keys::REVERSE, &reverse.path)?;
        let back_rate = reverse
            .find("rate")?
            .map_or(Ok(coded.clone()), |field| link_rate(&field))
            .and_then(|rate| behind_code(&rate, &reverse))?;
        let back_wire = Wire {
            rate: &back_rate,
            mtu,
            framing: framing_at(&back_rate),
        };
        let back = Half {
            delay: reverse
                .find("delay")?
                .map_or(Ok(delay), |field| field.duration())?,
            // The same text is another queue at another rate.
            queue: self::queue(&reverse.find("queue")?.unwrap_or(queue_field), back_wire)?,
            rate: back_rate.clone(),
            framing: back_wire.framing,
            impairments: self::impairments(&reverse)?,
            info: LinkInfo::read(&reverse, Some(&info))?,
        };
        let [processing, overlap] = ["processing", "processing_overlap"].map(|key| section.need_named(key));
        let (processing, overlap) = (processing?, overlap?);
        Ok(Plan {
            forward: Half {
                framing: framing_at(&rate),
                rate,
                delay,
                queue,
                impairments,
                info,
            },
            back,
            mtu,
            processing: processing.given.then(|| processing.duration()).transpose()?,
            overlap: overlap.given.then(|| overlap.flag()).transpose()?,
        })
    }
}

/// One direction of a link, as its queue needs it.
#[derive(Clone, Copy)]
pub(super) struct Wire<'a> {
    pub(super) rate: &'a LinkRate,
    pub(super) mtu: u32,
    pub(super) framing: u32,
}

impl Wire<'_> {
    /// Layer-3 bytes of full packets that are sent in `time`.
    fn bytes_in(self, time: Duration, place: &Place, path: &str) -> Result<Bytes, Error> {
        let written = place.source.text.get(place.span.clone()).unwrap_or("");
        match self.rate {
            LinkRate::Constant(rate) if *rate != Rate::UNLIMITED => {
                let bytes = self.bytes_at(rate.bps(), time);
                if bytes == Bytes::ZERO && !time.is_zero() {
                    let message = format!(
                        "a queue must hold at least one packet, and at {rate} not one byte is sent in {written}"
                    );
                    let help = format!("at least \"{} B\", or count packets: \"50 packets\"", self.mtu);
                    return Err(Error::at(place, path, message).help(place, help));
                }
                Ok(bytes)
            }
            LinkRate::Constant(_) => {
                let message = format!(
                    "a link without a limit of its rate sends everything at once: {written} has no meaning here"
                );
                Err(Error::at(place, path, message)
                    .help(place, "count bytes or packets: \"64 kB\", \"50 packets\""))
            }
            LinkRate::Trace {
                opportunities,
                period,
            } => {
                let bits = opportunities.len() as u64 * u64::from(OPPORTUNITY_BYTES) * 8;
                let mean = libm::round(bits as f64 / period.as_secs_f64()).max(1.0) as u64;
                let there = self.bytes_at(mean, time);
                let message =
                    format!("the rate of this link changes, so {written} is not one number of bytes");
                let help = format!(
                    "at the mean of the trace, {}, it would be \"{} B\"; count bytes or packets",
                    Rate::from_bps(mean),
                    there.get()
                );
                Err(Error::at(place, path, message).help(place, help))
            }
        }
    }

    fn bytes_at(self, bps: u64, time: Duration) -> Bytes {
        let full = u128::from(self.mtu);
        let bits = u128::from(bps) * u128::from(time.as_nanos()) / 1_000_000_000;
        let bytes = bits * full / (8 * (full + u128::from(self.framing)));
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Bytes that a packet has beyond layer 3 in mahimahi: its TUN device puts them in front, so that a packet of 1500 bytes takes a
/// whole opportunity.
const TRACE_FRAMING: u32 = 4;

/// A queue that holds at least one packet of the link.
pub(super) fn queue(field: &Field, wire: Wire<'_>) -> Result<(&'static str, Values), Error> {
    let mtu = wire.mtu;
    let node = value::with_limits_in_bytes(&field.node, &field.path, &|time, place, path| {
        wire.bytes_in(time, place, path)
    })?;
    let (name, values) = value::queue(&node, &field.path)?;
    contradictions(field, &values, wire)?;
    let has = |name: &str| values.table().iter().any(|parameter| parameter.name == name);
    for key in ["limit", "flow_limit"].into_iter().filter(|key| has(key)) {
        let place = field
            .node
            .as_table()
            .and_then(|table| table.get(key))
            .map_or(field.place(), |node| &node.place);
        let path = join(&field.path, key);
        match values.limit(key) {
            Limit::Bytes(bytes) if bytes < Bytes(u64::from(mtu)) => {
                let problem =
                    format!("a queue of {bytes} is smaller than one packet of this link (mtu {mtu})");
                let choice = format!("at least \"{mtu} B\", or count packets: \"50 packets\"");
                return Err(Error::at(place, &path, problem).help(place, choice));
            }
            Limit::Packets(1) if has("ns2_compat") && values.flag("ns2_compat") => {
                let problem =
                    "a queue with `ns2_compat` holds one packet less than its limit, so this one holds none";
                return Err(Error::at(place, &path, problem).help(place, "at least \"2 packets\""));
            }
            Limit::Bytes(bytes)
                if bytes == Bytes(u64::from(mtu)) && has("ns2_compat") && values.flag("ns2_compat") =>
            {
                let problem = format!(
                    "a queue with `ns2_compat` holds one byte less than its limit, so this one holds no packet of this link (mtu {mtu})"
                );
                return Err(
                    Error::at(place, &path, problem).help(place, format!("at least \"{} B\"", mtu + 1))
                );
            }
            Limit::Bytes(_) | Limit::Packets(_) | Limit::Unlimited => {}
        }
    }
    if has("limit") {
        check_in_packets(field, name, &values, mtu)?;
    }
    Ok((name, values))
}

/// What a discipline says of a limit in packets it says of a limit in bytes, too, once it is known how many packets of this link these
/// are.
fn check_in_packets(field: &Field, name: &str, values: &Values, mtu: u32) -> Result<(), Error> {
    let (Limit::Bytes(bytes), Some(entry)) = (values.limit("limit"), plugins::queue(name)) else {
        return Ok(());
    };
    let packets = u32::try_from(bytes.get() / u64::from(mtu.max(1))).unwrap_or(u32::MAX);
    let mut counted = values.clone();
    // A limit that is out of the range of the parameter was refused where it was read.
    let _ = counted.set("limit", ParameterValue::Limit(Limit::Packets(packets)));
    (entry.check)(&counted).map_err(|sentence| {
        field.fail(format!(
            "{sentence} (a limit of {bytes} is {packets} packets of this link, mtu {mtu})"
        ))
    })
}

/// Parameters that cannot be meant.
fn contradictions(field: &Field, values: &Values, wire: Wire<'_>) -> Result<(), Error> {
    let place_of = |key: &str| {
        let table = field.node.as_table();
        table
            .and_then(|table| table.get(key))
            .map_or(field.place(), |node| &node.place)
            .clone()
    };
    let has = |name: &str| values.table().iter().any(|parameter| parameter.name == name);
    if has("min_threshold")
        && has("max_threshold")
        && let (Some(low), Some(high)) = (values.number("min_threshold"), values.number("max_threshold"))
        && low > high
    {
        let place = place_of("min_threshold");
        let message = format!("`min_threshold` ({low}) is above `max_threshold` ({high})");
        return Err(
            Error::at(&place, &join(&field.path, "min_threshold"), message).help(
                &place,
                "drops begin at the lower and are most frequent at the higher",
            ),
        );
    }
    if has("bandwidth")
        && let (Some(shaped), LinkRate::Constant(rate)) = (values.rate("bandwidth"), wire.rate)
        && shaped > *rate
    {
        let place = place_of("bandwidth");
        let message =
            format!("`bandwidth` ({shaped}) is above the rate of this link ({rate}): it would shape nothing");
        return Err(Error::at(&place, &join(&field.path, "bandwidth"), message)
            .help(&place, "a little less than the rate, or leave it out"));
    }
    Ok(())
}

fn link_rate(field: &Field) -> Result<LinkRate, Error> {
    if field.node.as_text().is_some() || field.node.as_table().is_none() {
        return field.rate().map(LinkRate::Constant);
    }
    let section = Section::open(&field.node, keys::TRACE, &field.path)?;
    let trace = section.need("trace")?;
    let file = trace.file()?;
    let text = input::text_or_reason(&file, input::MOST_TRACE).map_err(|message| trace.fail(message))?;
    let (opportunities, period) =
        workload::mahimahi(&text).map_err(|message| trace.fail(format!("{}: {message}", file.display())))?;
    Ok(LinkRate::Trace {
        opportunities,
        period,
    })
}

/// What a correcting code leaves of the rate.
fn behind_code(rate: &LinkRate, section: &Section) -> Result<LinkRate, Error> {
    let Some(field) = section.find("fec")? else {
        return Ok(rate.clone());
    };
    let fec = Section::open(&field.node, keys::FEC, &field.path)?;
    let share = 1.0 / (1.0 + fec.need("overhead")?.number()?);
    match rate {
        LinkRate::Constant(rate) => {
            let left = libm::round(rate.bps() as f64 * share).max(1.0);
            Ok(LinkRate::Constant(Rate::from_bps(left as u64)))
        }
        LinkRate::Trace { .. } => {
            Err(field.fail("a trace says what arrives: a code on top of it has no rate to take from"))
        }
    }
}

/// A jitter varies. A bare time would be the same for every packet, and so a longer delay that no base RTT counts.
fn jitter(field: &Field) -> Result<Distribution, Error> {
    let read = distribution::distribution(field, Dimension::Time)?;
    match (field.node.as_text(), &read) {
        (Some(text), Distribution::Constant(time)) if *time > 0.0 => Err(field
            .fail("a jitter of one time for every packet is a longer `delay`")
            .help(
                &field.node.place,
                format!("write {{ dist = \"uniform\", min = \"0 s\", max = \"{text}\" }} for 0 to {text}, drawn for each packet"),
            )),
        _ => Ok(read),
    }
}

fn impairments(section: &Section) -> Result<Impairments, Error> {
    let mut impairments = Impairments::default();
    if let Some(field) = section.find("loss")? {
        (impairments.loss, impairments.loss_data_only) = loss(&field)?;
    }
    if let Some(field) = section.find("jitter")? {
        impairments.jitter = Some(jitter(&field)?);
    }
    impairments.bit_error_rate = section.need("bit_errors")?.number()?;
    let raw = impairments.bit_error_rate;
    let nothing = |field: &Field, what: &str| {
        field.fail(format!(
            "`{what}` has nothing to do: this way has no `bit_errors`"
        ))
    };
    if let Some(field) = section.find("fec")? {
        if raw <= 0.0 {
            return Err(nothing(&field, "fec"));
        }
        let fec = Section::open(&field.node, keys::FEC, &field.path)?;
        let left = fec.need("bit_errors")?;
        impairments.bit_error_rate = left.number()?;
        if impairments.bit_error_rate >= raw {
            return Err(left.fail(format!(
                "a code leaves fewer bit errors than there are without it: {raw:e}"
            )));
        }
    }
    if let Some(field) = section.find("arq")? {
        if raw <= 0.0 {
            return Err(nothing(&field, "arq"));
        }
        let arq = Section::open(&field.node, keys::ARQ, &field.path)?;
        impairments.arq = Some(Arq {
            retransmissions: arq.need("retransmissions")?.integer()? as u32,
            delay: arq.need("delay")?.duration()?,
        });
    }
    Ok(impairments)
}

fn loss(field: &Field) -> Result<(Loss, bool), Error> {
    if field.node.as_table().is_none() {
        if matches!(field.node.value, Value::Integer(1..))
            || matches!(field.node.value, Value::Float(share) if share >= 1.0)
        {
            return Err(field
                .fail("a loss of 1 is every packet: nothing would arrive")
                .help(field.place(), "one packet in a hundred is \"1 %\" or 0.01"));
        }
        return Ok((Loss::Random(Probability::from_f64(field.probability()?)), false));
    }
    let (kind, section) = Section::open_tagged(&field.node, &keys::LOSS, &field.path)?;
    let probability =
        |key| -> Result<Probability, Error> { Ok(Probability::from_f64(section.need(key)?.probability()?)) };
    let data_only = section.find("data_only")?.map_or(Ok(true), |flag| flag.flag())?;
    let model = match kind {
        "random" => Loss::Random(probability("probability")?),
        "burst" => Loss::Burst {
            enter: probability("enter")?,
            leave: probability("leave")?,
            good: probability("good")?,
            bad: probability("bad")?,
        },
        "script" => {
            let mut packets = Vec::new();
            for index in section.need("packets")?.list()? {
                packets.push(index.integer()? as u32);
            }
            packets.sort_unstable();
            packets.dedup();
            Loss::Script(packets.into())
        }
        _ => Loss::Tail(section.need("segments")?.integer()? as u32),
    };
    Ok((model, data_only))
}
