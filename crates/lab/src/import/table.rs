//! Open connections by address and port, in order of their last packet, so that the one that was silent longest is found at once.

use super::connection::Connection;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Both ends, the smaller one first.
pub(super) type Key = ((IpAddr, u16), (IpAddr, u16));

/// The key of a packet between these ends, and whether the smaller one sent it.
pub(super) fn key(source: (IpAddr, u16), destination: (IpAddr, u16)) -> (Key, bool) {
    match source <= destination {
        true => ((source, destination), true),
        false => ((destination, source), false),
    }
}

/// What is followed in a table.
pub(super) trait Followed {
    /// When its last packet came.
    fn last_ns(&self) -> u64;

    /// Whether it waits only for stragglers.
    fn is_over(&self) -> bool;
}

impl Followed for Connection {
    fn last_ns(&self) -> u64 {
        self.last_ns
    }

    fn is_over(&self) -> bool {
        Connection::is_over(self)
    }
}

/// A connection in the table.
#[derive(Debug)]
pub(super) struct Entry<C> {
    pub(super) key: Key,
    /// Whether the smaller end opened.
    pub(super) smaller_opened: bool,
    pub(super) connection: C,
    /// Waits only for stragglers.
    over: bool,
    before: u32,
    after: u32,
}

/// The table.
#[derive(Debug)]
pub(super) struct Table<C> {
    places: FxHashMap<Key, u32>,
    entries: Vec<Option<Entry<C>>>,
    free: Vec<u32>,
    /// First and last of the open ones and of those that are over.
    ends: [[u32; 2]; 2],
}

impl<C: Followed> Table<C> {
    pub(super) fn new() -> Table<C> {
        Table {
            places: FxHashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            ends: [[NONE; 2]; 2],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn find(&self, key: &Key) -> Option<u32> {
        self.places.get(key).copied()
    }

    pub(super) fn entry(&mut self, place: u32) -> Option<&mut Entry<C>> {
        self.entries.get_mut(place as usize)?.as_mut()
    }

    pub(super) fn insert(&mut self, key: Key, smaller_opened: bool, connection: C) -> u32 {
        let entry = Some(Entry {
            key,
            smaller_opened,
            connection,
            over: false,
            before: NONE,
            after: NONE,
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.places.insert(key, place);
        self.append(place);
        place
    }

    /// A connection had a packet: it is the last to be given up.
    pub(super) fn touch(&mut self, place: u32) {
        self.unlink(place);
        if let Some(entry) = self.entry(place) {
            entry.over = entry.connection.is_over();
        }
        self.append(place);
    }

    pub(super) fn remove(&mut self, place: u32) -> Option<Entry<C>> {
        self.unlink(place);
        let entry = self.entries.get_mut(place as usize)?.take()?;
        self.places.remove(&entry.key);
        self.free.push(place);
        Some(entry)
    }

    /// The connection that was silent longest, of those that are over or of the open ones.
    pub(super) fn oldest(&self, over: bool) -> Option<(u32, u64)> {
        let place = self.ends[usize::from(over)][0];
        let entry = self.entries.get(place as usize)?.as_ref()?;
        Some((place, entry.connection.last_ns()))
    }

    fn append(&mut self, place: u32) {
        let Some(over) = self.entry(place).map(|entry| usize::from(entry.over)) else {
            return;
        };
        let last = std::mem::replace(&mut self.ends[over][1], place);
        if let Some(entry) = self.entry(place) {
            (entry.before, entry.after) = (last, NONE);
        }
        match self.entry(last) {
            Some(last) => last.after = place,
            None => self.ends[over][0] = place,
        }
    }

    fn unlink(&mut self, place: u32) {
        let Some(entry) = self.entry(place) else { return };
        let (over, before, after) = (usize::from(entry.over), entry.before, entry.after);
        match self.entry(before) {
            Some(entry) => entry.after = after,
            None => self.ends[over][0] = after,
        }
        match self.entry(after) {
            Some(entry) => entry.before = before,
            None => self.ends[over][1] = before,
        }
    }
}

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::{Connection, Key, Table};
    use std::net::{IpAddr, Ipv4Addr};

    fn key(port: u16) -> Key {
        let host = |last| IpAddr::from(Ipv4Addr::new(192, 0, 2, last));
        ((host(1), port), (host(2), 80))
    }

    fn order(table: &mut Table<Connection>) -> Vec<u16> {
        std::iter::from_fn(|| {
            let (place, _) = table.oldest(false)?;
            Some(table.remove(place)?.key.0.1)
        })
        .collect()
    }

    #[test]
    fn the_one_that_was_silent_longest_is_first() {
        let mut table = Table::new();
        let places: Vec<u32> = (0..5)
            .map(|port| table.insert(key(port), true, Connection::new(u64::from(port), [0, 1], 1)))
            .collect();
        table.touch(places[0]);
        table.touch(places[2]);
        table.touch(places[2]);
        assert!(table.remove(places[3]).is_some());
        assert_eq!((table.len(), table.find(&key(3))), (4, None));
        let again = table.insert(key(7), false, Connection::new(9, [0, 1], 1));
        assert_eq!(again, places[3], "places are used again");
        assert_eq!(order(&mut table), [1, 4, 0, 2, 7]);
        assert_eq!(table.len(), 0);
        assert_eq!(table.oldest(true), None);
    }
}
