//! A link's table: rate, delay, queue and what else happens on the wire, both ways.

use super::document::Node;
use super::error::Error;
use super::keys::{self, Dimension};
use super::place::LinkInfo;
use super::read::{Field, Section, join};
use super::{distribution, value};
use crate::{input, workload};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::Probability;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::spec::{Arq, Impairments, LinkRate, Loss};

/// A link as described, both directions.
pub(crate) struct Plan {
    pub(crate) forward: Half,
    pub(crate) back: Half,
    pub(crate) mtu: u32,
    pub(crate) framing: u32,
    /// Time per packet; `None`: what the node at the sending end needs.
    pub(crate) processing: Option<Duration>,
    /// Whether that is hidden; `None`: as the node at the sending end has it.
    pub(crate) overlap: Option<bool>,
}

pub(crate) struct Half {
    pub(crate) rate: LinkRate,
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
        let mtu = section.need("mtu")?.integer()? as u32;
        let queue_field = section.need("queue")?;
        let queue = queue(&queue_field, mtu)?;
        let mut impairments = impairments(&section)?;
        let info = LinkInfo::read(&section)?;
        let coded = rate;
        let rate = behind_code(&coded, &section)?;
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
        let back = Half {
            rate: reverse
                .find("rate")?
                .map_or(Ok(coded.clone()), |field| link_rate(&field))
                .and_then(|rate| behind_code(&rate, &reverse))?,
            delay: reverse
                .find("delay")?
                .map_or(Ok(delay), |field| field.duration())?,
            queue: reverse
                .find("queue")?
                .map_or(Ok(queue.clone()), |field| self::queue(&field, mtu))?,
            impairments: self::impairments(&reverse)?,
            info: LinkInfo::read(&reverse)?.or(&info),
        };
        let [processing, overlap] = ["processing", "processing_overlap"].map(|key| section.need_named(key));
        let (processing, overlap) = (processing?, overlap?);
        Ok(Plan {
            forward: Half {
                rate,
                delay,
                queue,
                impairments,
                info,
            },
            back,
            mtu,
            framing: section.need("framing")?.integer()? as u32,
            processing: processing.given.then(|| processing.duration()).transpose()?,
            overlap: overlap.given.then(|| overlap.flag()).transpose()?,
        })
    }
}

/// A queue that holds at least one packet of the link.
fn queue(field: &Field, mtu: u32) -> Result<(&'static str, Values), Error> {
    let (name, values) = value::queue(&field.node, &field.path)?;
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
            Limit::Bytes(_) | Limit::Packets(_) | Limit::Unlimited => {}
        }
    }
    Ok((name, values))
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

fn impairments(section: &Section) -> Result<Impairments, Error> {
    let mut impairments = Impairments::default();
    if let Some(field) = section.find("loss")? {
        (impairments.loss, impairments.loss_data_only) = loss(&field)?;
    }
    if let Some(field) = section.find("jitter")? {
        impairments.jitter = Some(distribution::distribution(&field, Dimension::Time)?);
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
