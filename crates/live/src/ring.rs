//! The ring in which the kernel puts the frames of a packet socket.
//!
//! Two formats of it are used; the third that [`Format`] names is no ring of a packet socket. In the second (`TPACKET_V2`, [`Format::Frames`]) the kernel copies each frame into the next slot,
//! with the time at which it came, and wakes the reader for each. In the third (`TPACKET_V3`, [`Format::Blocks`]) frames lie one
//! behind the other in blocks, and the reader gets a block when it is full or a timer of a millisecond has run out (of two ticks of
//! the kernel before Linux 6.18): less work for each frame, but too late on a link that carries little.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// How frames lie in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A slot for each frame (`TPACKET_V2`): the reader is woken for each.
    Frames,
    /// Frames packed into blocks (`TPACKET_V3`): the reader is woken for each block, a millisecond late at most where little comes.
    Blocks,
    /// AF_XDP: frames in memory that a driver or the kernel fills before its own network stack, and takes frames from that leave.
    Xdp,
}

/// Slots or blocks in memory that the kernel and this process share.
pub(crate) struct Ring {
    memory: NonNull<u8>,
    /// Whether frames are packed into blocks.
    packed: bool,
    /// Bytes of a slot or block.
    piece: usize,
    pieces: usize,
    /// The slot or block that is read next.
    next: usize,
    /// Frames of the block that is being read which are still to be read, and where in it the next begins.
    left: u32,
    at: usize,
}

// SAFETY: the mapping belongs to the process, and to this value alone.
unsafe impl Send for Ring {}

/// A frame in the ring; its slot, or its block after the last one, is the kernel's again when this is dropped.
pub(crate) struct RingFrame<'a> {
    ring: &'a mut Ring,
    /// Its bytes in the mapping, as many as were copied.
    start: usize,
    length: usize,
    /// When it came (ns of the wall clock).
    pub(crate) stamp: u64,
    /// Whether the kernel copied all of it.
    pub(crate) whole: bool,
    /// The VLAN tag that the kernel took out: protocol and control information, as on the wire.
    pub(crate) tag: Option<[u8; 4]>,
    /// The checksum of its transport header was left to a device and is not there yet.
    pub(crate) unfinished: bool,
}

/// What the kernel says of a frame, in either format.
struct Header {
    status: u32,
    length: u32,
    copied: u32,
    mac: u16,
    seconds: u32,
    nanoseconds: u32,
    tag: [u16; 2],
}

impl Ring {
    /// Gives a packet socket, which is not bound yet, a ring for frames of up to `longest` bytes.
    pub(crate) fn new(socket: &OwnedFd, longest: usize, format: Format) -> io::Result<Ring> {
        let slot = (longest + RESERVED).next_power_of_two();
        let piece = match format {
            Format::Frames => {
                let block = slot.max(LEAST_BLOCK);
                let request = libc::tpacket_req {
                    tp_block_size: block as u32,
                    tp_block_nr: (BYTES / block) as u32,
                    tp_frame_size: slot as u32,
                    tp_frame_nr: (BYTES / slot) as u32,
                };
                let version = libc::tpacket_versions::TPACKET_V2 as i32;
                option(socket, libc::PACKET_VERSION, &version)?;
                option(socket, libc::PACKET_RX_RING, &request)?;
                slot
            }
            Format::Blocks => {
                let block = slot.max(BLOCK);
                let request = libc::tpacket_req3 {
                    tp_block_size: block as u32,
                    tp_block_nr: (BYTES / block) as u32,
                    tp_frame_size: slot as u32,
                    tp_frame_nr: (BYTES / slot) as u32,
                    tp_retire_blk_tov: 1,
                    tp_sizeof_priv: 0,
                    tp_feature_req_word: 0,
                };
                let version = libc::tpacket_versions::TPACKET_V3 as i32;
                option(socket, libc::PACKET_VERSION, &version)?;
                option(socket, libc::PACKET_RX_RING, &request)?;
                block
            }
            // Not of a packet socket.
            Format::Xdp => return Err(io::ErrorKind::Unsupported.into()),
        };
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring {
            memory,
            packed: format == Format::Blocks,
            piece,
            pieces: BYTES / piece,
            next: 0,
            left: 0,
            at: 0,
        })
    }

    /// Whose a slot or block is.
    fn status(&self, piece: usize) -> &AtomicU32 {
        let place = if self.packed {
            std::mem::offset_of!(libc::tpacket_block_desc, hdr)
        } else {
            0
        };
        // SAFETY: slots and blocks lie in the mapping, which lives as long as this; each has its status at that place, aligned,
        // which both sides change atomically.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(piece * self.piece + place).cast()) }
    }

    /// Whether a frame waits.
    pub(crate) fn has_frame(&self) -> bool {
        self.left > 0 || self.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The next frame, if one waits.
    pub(crate) fn next(&mut self) -> Option<RingFrame<'_>> {
        if !self.has_frame() {
            return None;
        }
        let base = self.next * self.piece;
        let (header, begin) = if self.packed {
            if self.left == 0 && !self.open_block(base) {
                return None;
            }
            let begin = base + self.at;
            let (header, behind) = self.block_header(begin);
            self.left -= 1;
            // The place of the next one; a frame that would leave the block ends it.
            self.at += behind;
            if self.at + size_of::<libc::tpacket3_hdr>() > self.piece {
                self.left = 0;
            }
            (header, begin)
        } else {
            (self.slot_header(base), base)
        };
        let room = base + self.piece - begin;
        let start = usize::from(header.mac).min(room);
        let length = (header.copied as usize).min(room - start);
        let tagged = header.status & libc::TP_STATUS_VLAN_VALID != 0;
        let [control, protocol] = header.tag;
        let protocol = if header.status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
            protocol
        } else {
            libc::ETH_P_8021Q as u16
        };
        let ([a, b], [c, d]) = (protocol.to_be_bytes(), control.to_be_bytes());
        Some(RingFrame {
            start: begin + start,
            length,
            stamp: u64::from(header.seconds) * 1_000_000_000 + u64::from(header.nanoseconds),
            whole: header.length as usize <= length,
            tag: tagged.then_some([a, b, c, d]),
            unfinished: header.status & libc::TP_STATUS_CSUMNOTREADY != 0,
            ring: self,
        })
    }

    /// Begins to read the block at `base`, which is this process's: false if nothing is in it.
    fn open_block(&mut self, base: usize) -> bool {
        // SAFETY: the kernel has filled this block and leaves it alone until its status is set back.
        let block = unsafe {
            let place = self.memory.as_ptr().add(base);
            place.cast::<libc::tpacket_block_desc>().read().hdr.bh1
        };
        self.left = block.num_pkts;
        self.at = (block.offset_to_first_pkt as usize).min(self.piece);
        if self.left == 0 || self.at + size_of::<libc::tpacket3_hdr>() > self.piece {
            self.left = 0;
            self.give_back();
            return false;
        }
        true
    }

    fn slot_header(&self, begin: usize) -> Header {
        // SAFETY: the kernel has filled this slot and leaves it alone until its status is set back.
        let header = unsafe {
            let place = self.memory.as_ptr().add(begin);
            place.cast::<libc::tpacket2_hdr>().read()
        };
        Header {
            status: header.tp_status,
            length: header.tp_len,
            copied: header.tp_snaplen,
            mac: header.tp_mac,
            seconds: header.tp_sec,
            nanoseconds: header.tp_nsec,
            tag: [header.tp_vlan_tci, header.tp_vlan_tpid],
        }
    }

    /// The header of a frame in a block, and how far behind it the next one is.
    fn block_header(&self, begin: usize) -> (Header, usize) {
        // SAFETY: the callers have seen that a header fits in the rest of the block, which is this process's.
        let header = unsafe {
            let place = self.memory.as_ptr().add(begin);
            place.cast::<libc::tpacket3_hdr>().read_unaligned()
        };
        let tag = [header.hv1.tp_vlan_tci as u16, header.hv1.tp_vlan_tpid];
        let behind = header.tp_next_offset as usize;
        let header = Header {
            status: header.tp_status,
            length: header.tp_len,
            copied: header.tp_snaplen,
            mac: header.tp_mac,
            seconds: header.tp_sec,
            nanoseconds: header.tp_nsec,
            tag,
        };
        (header, behind)
    }

    /// The slot or block that was read is the kernel's again.
    fn give_back(&mut self) {
        self.status(self.next)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.pieces;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast::<c_void>(), BYTES) };
    }
}

impl RingFrame<'_> {
    /// The bytes of the frame.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies in a slot or block that the kernel leaves alone until this is dropped.
        unsafe { std::slice::from_raw_parts(self.ring.memory.as_ptr().add(self.start), self.length) }
    }
}

impl Drop for RingFrame<'_> {
    fn drop(&mut self) {
        if self.ring.left == 0 {
            self.ring.give_back();
        }
    }
}

/// Sets an option of a packet socket.
pub(crate) fn option<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a live value of the length given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Bytes of a ring: some 4000 frames of 1500 bytes, so that a pause of several milliseconds loses nothing.
const BYTES: usize = 8 << 20;
/// What a slot holds before the frame: its header, the address it came from, and alignment.
const RESERVED: usize = 128;
/// Memory is asked for in pieces of this many bytes at least.
const LEAST_BLOCK: usize = 1 << 16;
/// Bytes of a block: some ten frames of 1500 bytes.
const BLOCK: usize = 1 << 14;
