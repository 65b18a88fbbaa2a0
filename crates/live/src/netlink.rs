//! Messages of rtnetlink: what the router asks of the kernel and reads of its answers.
//!
//! A message is a header, a part of fixed length that its kind prescribes, and attributes. Numbers have the byte order of the machine, and
//! every part begins at a multiple of four bytes. What is cut off or contradicts itself ends the reading.
//!
//! **Source.** netlink(7), rtnetlink(7); `linux/netlink.h`, `linux/rtnetlink.h`, `linux/neighbour.h`, `linux/if_link.h`.

/// Bytes of `struct ndmsg`, the fixed part of messages of neighbours.
pub(crate) const NEIGHBOUR_BYTES: usize = 12;

/// Bytes of `struct ifinfomsg`, the fixed part of messages of links.
pub(crate) const LINK_BYTES: usize = 16;

/// A message to the kernel.
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A message without attributes.
    pub(crate) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Request {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend(0u32.to_ne_bytes()); // the length, when it is known
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags as u16).to_ne_bytes());
        bytes.extend([0; 8]); // sequence number and sender: the kernel needs neither
        bytes.extend(fixed);
        Request(bytes)
    }

    /// The message with one attribute more.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        self.0
            .extend(((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// The bytes to send.
    pub(crate) fn bytes(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'b> {
    /// Its kind (`RTM_NEWLINK` and others).
    pub(crate) kind: u16,
    /// What follows its header.
    pub(crate) body: &'b [u8],
}

impl<'b> Message<'b> {
    /// The attributes after a fixed part of so many bytes: kind and value of each.
    pub(crate) fn attributes(&self, fixed: usize) -> impl Iterator<Item = (u16, &'b [u8])> + use<'b> {
        let mut rest = self.body.get(fixed..).unwrap_or_default();
        std::iter::from_fn(move || {
            let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
            let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
            let value = rest.get(ATTRIBUTE_BYTES..length)?;
            rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
            Some((kind & KIND_MASK, value))
        })
    }

    /// The value of the attribute of this kind.
    pub(crate) fn attribute(&self, fixed: usize, kind: u16) -> Option<&'b [u8]> {
        self.attributes(fixed)
            .find(|found| found.0 == kind)
            .map(|found| found.1)
    }
}

/// The messages that were received together.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*rest.get(4..)?.first_chunk()?);
        let body = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(Message { kind, body })
    })
}

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 4;
const ALIGNMENT: usize = 4;
/// Without the marks that a value holds attributes itself, or numbers in the byte order of the network.
const KIND_MASK: u16 = 0x3fff;

#[cfg(test)]
mod tests {
    use super::{LINK_BYTES, NEIGHBOUR_BYTES, Request, messages};

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Request::new(28, 0x401, &[7; NEIGHBOUR_BYTES])
            .attribute(1, &[192, 0, 2, 1])
            .attribute(0x8002, &[1, 2, 3, 4, 5, 6])
            .bytes();
        assert_eq!(bytes.len(), 16 + 12 + 8 + 12, "padded to four bytes");
        bytes.extend(Request::new(18, 1, &[0; LINK_BYTES]).bytes());
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!([read[0].kind, read[1].kind], [28, 18]);
        assert_eq!(read[0].attribute(NEIGHBOUR_BYTES, 1), Some(&[192, 0, 2, 1][..]));
        assert_eq!(
            read[0].attribute(NEIGHBOUR_BYTES, 2),
            Some(&[1, 2, 3, 4, 5, 6][..])
        );
        assert_eq!(read[1].attributes(LINK_BYTES).count(), 0);
    }

    /// The kernel is trusted, but lengths are checked all the same: any cut, any length of message or attribute.
    #[test]
    fn damaged_messages_end_the_reading() {
        let whole = Request::new(28, 0, &[0; NEIGHBOUR_BYTES])
            .attribute(1, &[1; 5])
            .bytes();
        for cut in 0..whole.len() {
            assert!(messages(&whole[..cut]).count() <= 1);
        }
        for at in [0, 28] {
            for length in 0..=u8::MAX {
                let mut bytes = whole.clone();
                bytes[at] = length;
                let attributes = messages(&bytes).map(|message| message.attributes(NEIGHBOUR_BYTES).count());
                assert!(attributes.sum::<usize>() <= 16);
            }
        }
    }
}
