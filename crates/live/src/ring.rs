//! The ring in which the kernel puts the frames of a packet socket.
//!
//! It is a ring of the second format (`TPACKET_V2`): the kernel copies each frame into the next slot, with the time at which it
//! came, and wakes the reader for each. The third format wakes for whole blocks of frames, or by a timer of milliseconds, which
//! would be late on a link that carries little.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Slots in memory that the kernel and this process share.
pub(crate) struct Ring {
    memory: NonNull<u8>,
    /// Bytes of a slot.
    slot: usize,
    slots: usize,
    /// The slot that is read next.
    next: usize,
}

// SAFETY: the mapping belongs to the process, and to this value alone.
unsafe impl Send for Ring {}

/// A frame in the ring; its slot is the kernel's again when this is dropped.
pub(crate) struct RingFrame<'a> {
    ring: &'a mut Ring,
    /// Its bytes, as many as the slot holds.
    start: usize,
    length: usize,
    /// When it came (ns of the wall clock).
    pub(crate) stamp: u64,
}

impl Ring {
    /// Gives a packet socket, which is not bound yet, a ring for frames of up to `longest` bytes.
    pub(crate) fn new(socket: &OwnedFd, longest: usize) -> io::Result<Ring> {
        let slot = (longest + RESERVED).next_power_of_two();
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
            slot,
            slots: BYTES / slot,
            next: 0,
        })
    }

    /// Whose a slot is.
    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: slots lie in the mapping, which lives as long as this; each begins with its status, aligned, which both sides
        // change atomically.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(slot * self.slot).cast()) }
    }

    /// Whether a frame waits.
    pub(crate) fn has_frame(&self) -> bool {
        self.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The next frame, if one waits.
    pub(crate) fn next(&mut self) -> Option<RingFrame<'_>> {
        if !self.has_frame() {
            return None;
        }
        // SAFETY: the kernel has filled this slot and leaves it alone until its status is set back.
        let header = unsafe {
            self.memory
                .as_ptr()
                .add(self.next * self.slot)
                .cast::<libc::tpacket2_hdr>()
                .read()
        };
        let start = usize::from(header.tp_mac).min(self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - start);
        let stamp = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        Some(RingFrame {
            ring: self,
            start,
            length,
            stamp,
        })
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
        let at = self.ring.next * self.ring.slot + self.start;
        // SAFETY: the range lies in a slot that the kernel leaves alone until this is dropped.
        unsafe { std::slice::from_raw_parts(self.ring.memory.as_ptr().add(at), self.length) }
    }
}

impl Drop for RingFrame<'_> {
    fn drop(&mut self) {
        let ring = &mut *self.ring;
        ring.status(ring.next)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        ring.next = (ring.next + 1) % ring.slots;
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
