//! What a queue discipline written in Python sees: packets, the link, and what it may report.

use crate::error::usage;
use fleetfoot_core::flow::{FlowId, FlowKey};
use fleetfoot_core::link::PacketClass;
use fleetfoot_core::packet::{Ecn, Kind, Packet as CorePacket};
use fleetfoot_core::queue::{DropReason, Limit as CoreLimit, LinkContext};
use fleetfoot_core::units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A packet in the care of a queue.
#[pyclass(module = "fleetfoot._native")]
pub(crate) struct Packet {
    pub(super) packet: CorePacket,
    pub(super) key: FlowKey,
    /// The queue counts it.
    pub(super) counted: bool,
    /// It has not been dropped and has not left.
    pub(super) here: bool,
}

#[pymethods]
impl Packet {
    #[getter]
    fn length(&self) -> u32 {
        self.packet.segment.len()
    }

    #[getter]
    fn payload(&self) -> u32 {
        self.packet.segment.payload
    }

    #[getter]
    fn flow(&self) -> u32 {
        self.packet.flow.0
    }

    #[getter]
    fn source(&self) -> u32 {
        self.key.source.0
    }

    #[getter]
    fn destination(&self) -> u32 {
        self.key.destination.0
    }

    #[getter]
    fn source_port(&self) -> u16 {
        self.key.source_port
    }

    #[getter]
    fn destination_port(&self) -> u16 {
        self.key.destination_port
    }

    #[getter]
    fn protocol(&self) -> u8 {
        self.key.protocol
    }

    #[getter]
    fn enqueued_at(&self) -> f64 {
        self.packet.enqueued_at.as_secs_f64()
    }

    #[getter]
    fn is_tcp(&self) -> bool {
        self.packet.segment.kind() == Kind::Tcp
    }

    #[getter]
    fn is_ack(&self) -> bool {
        PacketClass::of(&self.packet) == PacketClass::Ack
    }

    #[getter]
    fn sequence(&self) -> u32 {
        self.packet.segment.seq.0
    }

    #[getter]
    fn dscp(&self) -> u8 {
        self.packet.segment.tos >> 2
    }

    #[getter]
    fn ecn(&self) -> &'static str {
        match self.packet.segment.ecn() {
            Ecn::NotEct => "not-ect",
            Ecn::Ect1 => "ect1",
            Ecn::Ect0 => "ect0",
            Ecn::Ce => "ce",
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<Packet flow={} length={} ecn={}>",
            self.packet.flow.0,
            self.length(),
            self.ecn()
        )
    }
}

/// What may wait.
#[pyclass(frozen, module = "fleetfoot._native")]
pub(crate) struct Limit(CoreLimit);

impl Limit {
    pub(super) fn of(limit: CoreLimit) -> Limit {
        Limit(limit)
    }
}

#[pymethods]
impl Limit {
    #[getter]
    fn packets(&self) -> Option<u32> {
        match self.0 {
            CoreLimit::Packets(packets) => Some(packets),
            CoreLimit::Bytes(_) | CoreLimit::Unlimited => None,
        }
    }

    #[getter]
    fn bytes(&self) -> Option<u64> {
        match self.0 {
            CoreLimit::Bytes(bytes) => Some(bytes.get()),
            CoreLimit::Packets(_) | CoreLimit::Unlimited => None,
        }
    }

    /// Whether `packet` fits beside what waits.
    fn admits(&self, context: PyRef<'_, Context>, packet: PyRef<'_, Packet>) -> bool {
        let backlog = fleetfoot_core::queue::Backlog {
            packets: context.packets,
            bytes: Bytes(context.bytes),
        };
        self.0.admits(backlog, packet.packet.segment.len())
    }

    fn __repr__(&self) -> String {
        match self.0 {
            CoreLimit::Packets(packets) => format!("Limit({packets} packets)"),
            CoreLimit::Bytes(bytes) => format!("Limit({bytes})"),
            CoreLimit::Unlimited => String::from("Limit(unlimited)"),
        }
    }
}

/// What a queue learns of the link it stands in front of.
#[pyclass(frozen, get_all, module = "fleetfoot._native")]
pub(crate) struct Link {
    mtu: u32,
    rate: u64,
    seed: u64,
}

impl Link {
    pub(super) fn of(link: &LinkContext) -> Link {
        Link {
            mtu: link.mtu,
            rate: link.rate.bps(),
            seed: link.seed,
        }
    }
}

/// What waits, and what a call of a queue reports.
#[pyclass(name = "QueueContext", module = "fleetfoot._native")]
#[derive(Default)]
pub(crate) struct Context {
    pub(super) packets: u32,
    pub(super) bytes: u64,
    pub(super) drops: Vec<(CorePacket, DropReason)>,
    pub(super) marks: Vec<FlowId>,
}

impl Context {
    /// A packet that waited leaves.
    pub(super) fn subtract(&mut self, packet: &CorePacket) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.segment.len());
    }
}

#[pymethods]
impl Context {
    #[getter]
    fn packets(&self) -> u32 {
        self.packets
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Drops a packet for a reason.
    #[pyo3(signature = (packet, reason = "full"))]
    fn drop(&mut self, mut packet: PyRefMut<'_, Packet>, reason: &str) -> PyResult<()> {
        let reasons = [
            ("full", DropReason::Full),
            ("early", DropReason::Early),
            ("pushed_out", DropReason::PushedOut),
        ];
        let Some((_, reason)) = reasons.into_iter().find(|(name, _)| *name == reason) else {
            return Err(usage(format!(
                "no reason to drop a packet is called `{reason}`; the reasons are `full`, `early` and `pushed_out`"
            )));
        };
        if !packet.here {
            return Err(PyValueError::new_err("this packet has left the queue already"));
        }
        packet.here = false;
        if packet.counted {
            self.subtract(&packet.packet);
        }
        self.drops.push((packet.packet, reason));
        Ok(())
    }

    /// Sets "congestion experienced" if the packet can carry it. Whether it can.
    fn mark(&mut self, mut packet: PyRefMut<'_, Packet>) -> bool {
        let capable = packet.packet.segment.ecn_capable();
        if capable {
            packet.packet.segment.set_ecn(Ecn::Ce);
            self.marks.push(packet.packet.flow);
        }
        capable
    }
}
