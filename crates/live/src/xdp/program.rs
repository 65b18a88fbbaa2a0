//! The programs that give frames to the socket, in the kernel's own code.
//!
//! In a bridge every frame is the socket's. In a router ([`Own`]) those are that may have to be forwarded, and the kernel gets what
//! [`fate`](crate::router::packet) leaves to it: what has another Ethernet address, of one host or of several, what is neither IPv4 nor IPv6 (ARP, tags of
//! VLANs; a tag of VLAN 0, which is a priority, is passed over),
//! packets to groups, and to this machine. What is too short to say so, or of the wrong version, is the socket's, too, where it is counted.
//!
//! **Deviation.** Of a packet its version and its destination are read. One to this machine whose header is damaged otherwise is left
//! to the kernel, which discards it as a packet socket's reader would.

use super::calls::{bpf, halves, map, owned, update};
use super::own::{BYTES, FRAMES, HARDWARE, KEY, Own};
use crate::frames::{HEADER, IPV4, IPV6, TAG};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// What was tried, and why it did not work.
type Failure = (&'static str, io::Error);

/// A program that is loaded.
pub(super) struct Program {
    fd: OwnedFd,
    _sockets: OwnedFd,
}

impl Program {
    /// Loads the program that gives `socket` every frame, or all but what is `own`.
    pub(super) fn load(socket: RawFd, own: Option<&Own>) -> Result<Program, Failure> {
        const XSKMAP: u32 = 17;
        const PROGRAM_LOAD: i32 = 5;
        const PROGRAM_XDP: u32 = 6;
        let fail = |cause| (RIGHTS, cause);
        let sockets = map(XSKMAP, [4, 4], 1, 0).map_err(fail)?;
        update(&sockets, &0_u32.to_ne_bytes(), &socket.to_ne_bytes()).map_err(fail)?;
        let code = code(sockets.as_raw_fd(), own.map(Own::maps));
        let [start, licence] = [code.as_ptr() as u64, c"Dual MIT/GPL".as_ptr() as u64].map(halves);
        let mut load = [0_u32; 18];
        load[..6].copy_from_slice(&[
            PROGRAM_XDP,
            code.len() as u32,
            start[0],
            start[1],
            licence[0],
            licence[1],
        ]);
        load[17] = ATTACH_XDP; // expected_attach_type
        let fd = owned(bpf(PROGRAM_LOAD, &mut load)).map_err(|cause| {
            let old = own.is_some() && cause.raw_os_error() == Some(libc::EINVAL);
            (if old { OLD } else { RIGHTS }, cause)
        })?;
        Ok(Program {
            fd,
            _sockets: sockets,
        })
    }

    /// Attaches it to an interface: the link that keeps it there, and whether it runs in the driver.
    pub(super) fn attach(&self, index: u32) -> Result<(OwnedFd, bool), Failure> {
        const LINK_CREATE: i32 = 28;
        const BEHIND_DRIVER: u32 = 1 << 1;
        const IN_DRIVER: u32 = 1 << 2;
        let link = |mode| {
            owned(bpf(
                LINK_CREATE,
                &mut [self.fd.as_raw_fd() as u32, index, ATTACH_XDP, mode],
            ))
        };
        let busy = |cause: &io::Error| matches!(cause.raw_os_error(), Some(libc::EBUSY | libc::EEXIST));
        match link(IN_DRIVER) {
            Ok(link) => return Ok((link, true)),
            Err(cause) if busy(&cause) => {
                return Err(("another program is attached (ip link set NAME xdp off)", cause));
            }
            Err(_) => {}
        }
        match link(BEHIND_DRIVER) {
            Ok(link) => Ok((link, false)),
            Err(cause) => Err(("the program cannot be attached", cause)),
        }
    }
}

/// The instructions: with the maps of what is `own` ([`Own::maps`]) before those that give a frame to the socket in the map `sockets`.
fn code(sockets: RawFd, own: Option<[RawFd; 2]>) -> Vec<u64> {
    let mut code = Code::default();
    code.put(MOVE, [R6, R1], 0, 0); // the context
    if let Some([destinations, facts]) = own {
        code.put(WORD, [R2, R1], 0, 0); // where the frame begins
        code.put(WORD, [R3, R1], 4, 0); // and ends
        code.reaches(HEADER, Place::Socket);
        // For this interface?
        code.constant(R1, MAP_VALUE, facts);
        for (load, at) in [(WORD, 0), (HALF, 4)] {
            code.put(load, [R4, R2], at, 0);
            code.put(load, [R5, R1], HARDWARE + at, 0);
            code.jump(UNLESS_SAME, [R4, R5], 0, Place::Kernel);
        }
        code.priority_tag();
        code.put(HALF, [R4, R2], HEADER as i16 - 2, 0);
        code.jump(IF_IS, [R4, 0], u16::from_ne_bytes(IPV6).into(), Place::Six);
        code.jump(UNLESS_IS, [R4, 0], u16::from_ne_bytes(IPV4).into(), Place::Kernel);
        // IPv4: 224.0.0.0/4 is the kernel's; the key.
        let to = code.network_header(4, 20, 16);
        code.put(AND, [R4, 0], 0, 0xf0);
        code.jump(IF_IS, [R4, 0], 0xe0, Place::Kernel);
        code.key(4, to, 1);
        code.jump(JUMP, [0, 0], 0, Place::Look);
        // IPv6: ff00::/8 is.
        code.here(Place::Six);
        let to = code.network_header(6, 40, 24);
        code.jump(IF_IS, [R4, 0], 0xff, Place::Kernel);
        code.key(6, to, 4);
        code.here(Place::Look);
        code.constant(R1, MAP, destinations);
        code.put(MOVE, [R2, R10], 0, 0);
        code.put(ADD, [R2, 0], 0, -(KEY as i32));
        code.put(CALL, [0, 0], 0, MAP_LOOKUP);
        code.jump(IF_IS, [R0, 0], 0, Place::Socket);
        // One frame more for the kernel.
        code.here(Place::Kernel);
        code.put(MOVE, [R1, R6], 0, 0);
        code.put(CALL, [0, 0], 0, XDP_GET_BUFF_LEN);
        code.constant(R1, MAP_VALUE, facts);
        code.put(SET, [R2, 0], 0, 1);
        code.put(ADD_ATOMICALLY, [R1, R2], FRAMES, 0);
        code.put(ADD_ATOMICALLY, [R1, R0], BYTES, 0);
        code.put(SET, [R0, 0], 0, XDP_PASS);
        code.put(EXIT, [0, 0], 0, 0);
        code.here(Place::Socket);
    }
    // return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)
    code.put(WORD, [R2, R6], 16, 0);
    code.constant(R1, MAP, sockets);
    code.put(SET, [R3, 0], 0, XDP_PASS);
    code.put(CALL, [0, 0], 0, REDIRECT_MAP);
    code.put(EXIT, [0, 0], 0, 0);
    code.instructions
}

/// Instructions, and jumps among them whose length is not known yet.
#[derive(Default)]
struct Code {
    instructions: Vec<u64>,
    jumps: Vec<(usize, Place)>,
}

/// Where jumps go, always onwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A packet of IPv6.
    Six,
    /// It has a tag.
    Tagged,
    /// It has no tag, or none that counts.
    Untagged,
    /// Its destination is looked up.
    Look,
    /// The frame is the kernel's.
    Kernel,
    /// The frame is the socket's.
    Socket,
}

impl Code {
    /// An instruction on the registers `to` and `from`.
    fn put(&mut self, code: u8, [to, from]: [u8; 2], offset: i16, immediate: i32) {
        self.instructions.push(
            u64::from(code)
                | u64::from(to | from << 4) << 8
                | u64::from(offset as u16) << 16
                | u64::from(immediate as u32) << 32,
        );
    }

    fn jump(&mut self, code: u8, registers: [u8; 2], immediate: i32, place: Place) {
        self.jumps.push((self.instructions.len(), place));
        self.put(code, registers, 0, immediate);
    }

    /// Jumps to `place` come here.
    fn here(&mut self, place: Place) {
        for (at, _) in self.jumps.extract_if(.., |(_, to)| *to == place) {
            // Counted from the instruction behind the jump.
            let length = self.instructions.len() - at - 1;
            self.instructions[at] |= u64::from(length as u16) << 16;
        }
    }

    /// A register becomes what `kind` says of a map.
    fn constant(&mut self, register: u8, kind: u8, map: RawFd) {
        self.put(CONSTANT, [register, kind], 0, map);
        self.put(0, [0, 0], 0, 0); // its upper half
    }

    /// A frame that does not have so many bytes goes to `place`, so that what follows may read them.
    fn reaches(&mut self, length: usize, place: Place) {
        self.put(MOVE, [R4, R2], 0, 0);
        self.put(ADD, [R4, 0], 0, length as i32);
        self.jump(IF_MORE, [R4, R3], 0, place);
    }

    /// Behind a tag of VLAN 0 the frame is read as if it began four bytes later; one with another tag is the kernel's.
    fn priority_tag(&mut self) {
        let at = HEADER as i16 - 2;
        let [customer, provider] = [[0x81, 0], [0x88, 0xa8]].map(|kind| i32::from(u16::from_ne_bytes(kind)));
        self.put(HALF, [R4, R2], at, 0);
        self.jump(IF_IS, [R4, 0], provider, Place::Tagged);
        self.jump(UNLESS_IS, [R4, 0], customer, Place::Untagged);
        self.here(Place::Tagged);
        self.reaches(HEADER + TAG, Place::Kernel);
        self.put(HALF, [R4, R2], at + 2, 0);
        self.put(AND, [R4, 0], 0, u16::from_ne_bytes([0x0f, 0xff]).into());
        self.jump(UNLESS_IS, [R4, 0], 0, Place::Kernel);
        self.put(ADD, [R2, 0], 0, TAG as i32);
        self.here(Place::Untagged);
    }

    /// A frame without a whole header of IP of this version and length is the socket's; else R4 becomes the first byte of the destination, which
    /// is at `to` in the header: where that is in the frame.
    fn network_header(&mut self, version: i32, length: usize, to: usize) -> i16 {
        self.reaches(HEADER + length, Place::Socket);
        self.put(BYTE, [R4, R2], HEADER as i16, 0);
        self.put(SHIFT_RIGHT, [R4, 0], 0, 4);
        self.jump(UNLESS_IS, [R4, 0], version, Place::Socket);
        let to = (HEADER + to) as i16;
        self.put(BYTE, [R4, R2], to, 0);
        to
    }

    /// Makes a key of [`Own`] on the stack, of an address of so many words at `to` in the frame.
    fn key(&mut self, version: i32, to: i16, words: i16) {
        let begin = -(KEY as i16);
        self.put(STORE_CONSTANT, [R10, 0], begin, version);
        for word in 0..4 {
            let place = begin + 4 + 4 * word;
            if word < words {
                self.put(WORD, [R4, R2], to + 4 * word, 0);
                self.put(STORE, [R10, R4], place, 0);
            } else {
                self.put(STORE_CONSTANT, [R10, 0], place, 0);
            }
        }
    }
}

const RIGHTS: &str = "no program can be loaded";
const OLD: &str =
    "the program that leaves to the kernel what is its own cannot be loaded (Linux 5.18 is needed)";
const ATTACH_XDP: u32 = 37;
const XDP_PASS: i32 = 2;

/// Registers: results, arguments, what calls keep, the end of the stack.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const R6: u8 = 6;
const R10: u8 = 10;

/// Loads from memory: of four, two bytes, one.
const WORD: u8 = 0x61;
const HALF: u8 = 0x69;
const BYTE: u8 = 0x71;
/// Stores of four bytes: of a register, of a constant.
const STORE: u8 = 0x63;
const STORE_CONSTANT: u8 = 0x62;
const ADD_ATOMICALLY: u8 = 0xdb;
/// Of 64 bits: a register becomes another, a constant; and with a constant.
const MOVE: u8 = 0xbf;
const SET: u8 = 0xb7;
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
const SHIFT_RIGHT: u8 = 0x77;
/// Jumps: always; if a register is a constant, is not; is not another register, is more than it.
const JUMP: u8 = 0x05;
const IF_IS: u8 = 0x15;
const UNLESS_IS: u8 = 0x55;
const UNLESS_SAME: u8 = 0x5d;
const IF_MORE: u8 = 0x2d;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// A constant of two instructions, and what it stands for: a map, the address of an array's value.
const CONSTANT: u8 = 0x18;
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;
/// Calls.
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_GET_BUFF_LEN: i32 = 188;

#[cfg(test)]
mod tests;
