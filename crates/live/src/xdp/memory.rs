//! Memory that an AF_XDP socket shares with the kernel: pieces for frames, and rings that say whose each is.

use super::calls::{read, set};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The memory of a socket.
pub(super) struct Rings {
    pub(super) memory: Mapping,
    pub(super) receive: Descriptors,
    pub(super) send: Descriptors,
    pub(super) fill: Descriptors,
    pub(super) complete: Descriptors,
}

impl Rings {
    pub(super) fn new(fd: &OwnedFd, piece: u32) -> io::Result<Rings> {
        let memory = Mapping::new(2 * SLOTS as usize * piece as usize, -1, 0)?;
        let region = libc::xdp_umem_reg {
            addr: memory.memory.as_ptr() as u64,
            len: memory.length as u64,
            chunk_size: piece,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(fd, libc::XDP_UMEM_REG, &region)?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(fd, ring, &SLOTS)?;
        }
        // SAFETY: zeros are valid offsets.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        read(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        let raw = fd.as_raw_fd();
        let descriptor = size_of::<libc::xdp_desc>();
        let address = size_of::<u64>();
        let mut fill = Descriptors::new(raw, &offsets.fr, address, libc::XDP_UMEM_PGOFF_FILL_RING as i64)?;
        for number in 0..SLOTS {
            // SAFETY: entries of the ring, of which the kernel reads none yet.
            unsafe {
                fill.entry::<u64>(number)
                    .write(u64::from(number) * u64::from(piece));
            }
        }
        fill.own = SLOTS;
        fill.written_up_to_here();
        Ok(Rings {
            memory,
            receive: Descriptors::new(raw, &offsets.rx, descriptor, libc::XDP_PGOFF_RX_RING)?,
            send: Descriptors::new(raw, &offsets.tx, descriptor, libc::XDP_PGOFF_TX_RING)?,
            fill,
            complete: Descriptors::new(
                raw,
                &offsets.cr,
                address,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
            )?,
        })
    }
}

/// Memory that this process asked for, or shares with the kernel.
pub(super) struct Mapping {
    memory: NonNull<u8>,
    pub(super) length: usize,
}

// SAFETY: a mapping belongs to the process, and to this value alone.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(super) fn new(length: usize, fd: RawFd, offset: i64) -> io::Result<Mapping> {
        let flags = if fd < 0 {
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS
        } else {
            libc::MAP_SHARED | libc::MAP_POPULATE
        };
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { memory, length })
    }

    pub(super) fn at(&self, place: usize) -> *mut u8 {
        debug_assert!(place < self.length);
        // SAFETY: the place is in the mapping.
        unsafe { self.memory.as_ptr().add(place) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this length.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}

/// A ring of descriptors, of which one side writes and the other reads.
pub(super) struct Descriptors {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    /// Own place, and that of the other side as it was seen last.
    pub(super) own: u32,
    other: u32,
}

impl Descriptors {
    fn new(fd: RawFd, offsets: &libc::xdp_ring_offset, size: usize, page: i64) -> io::Result<Descriptors> {
        let length = offsets.desc as usize + SLOTS as usize * size;
        Ok(Descriptors {
            mapping: Mapping::new(length, fd, page)?,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            entries: offsets.desc as usize,
            own: 0,
            other: 0,
        })
    }

    fn place(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel has its counters there, aligned; both sides change them atomically.
        unsafe { AtomicU32::from_ptr(self.mapping.at(at).cast()) }
    }

    pub(super) fn entry<T>(&self, number: u32) -> *mut T {
        self.mapping
            .at(self.entries + (number & (SLOTS - 1)) as usize * size_of::<T>())
            .cast()
    }

    /// Entries that the kernel has written and that are not read yet.
    pub(super) fn ready(&mut self) -> u32 {
        if self.other == self.own {
            self.other = self.place(self.producer).load(Ordering::Acquire);
        }
        self.other.wrapping_sub(self.own)
    }

    pub(super) fn has(&self) -> bool {
        self.other != self.own || self.place(self.producer).load(Ordering::Acquire) != self.own
    }

    /// Whether the kernel has read all that was written.
    pub(super) fn all_read(&self) -> bool {
        self.place(self.consumer).load(Ordering::Acquire) == self.own
    }

    pub(super) fn read_up_to_here(&self) {
        self.place(self.consumer).store(self.own, Ordering::Release);
    }

    pub(super) fn written_up_to_here(&self) {
        self.place(self.producer).store(self.own, Ordering::Release);
    }
}

/// Entries of each ring, and pieces for each direction.
pub(super) const SLOTS: u32 = 4096;
