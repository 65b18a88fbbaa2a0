//! A capture of which nothing can be made, or nothing that is true.

use super::{Capture, Over, Stop};

impl<F: FnMut(Over)> Capture<F> {
    /// Why nothing can be made of it, if that is so.
    pub(super) fn refusal(&self, stop: &Stop) -> Option<String> {
        match self.written {
            0 => Some(self.nothing(stop)),
            _ => self.merged(),
        }
    }

    fn nothing(&self, stop: &Stop) -> String {
        if let Some((link, _)) = self.unknown_links.iter().next()
            && self.links.is_empty()
        {
            return format!(
                "its kind of link ({link}) is not read; these are: Ethernet, Linux cooked, raw IP, loopback"
            );
        }
        let mut message = format!("no TCP connection with data is in its {} packets", stop.frames);
        let (left_out, _) =
            self.counts
                .notes(self.unknown_links.values().sum(), self.samples.rtt.n() > 0, stop);
        if !left_out.is_empty() {
            let list: Vec<String> = left_out
                .iter()
                .map(|entry| format!("{} {}", entry.count, entry.what))
                .collect();
            message.push_str(&format!(" ({})", list.join("; ")));
        }
        if let Some(damage) = &stop.damage {
            message.push_str(&format!("; it ended at {damage}"));
        }
        message
    }

    /// Why it is not believed: nearly every packet is in it twice.
    fn merged(&self) -> Option<String> {
        let [once, again] = self.sightings;
        (once >= LEAST_SIGHTINGS && again as f64 >= MERGED * once as f64).then(|| {
            format!(
                "nearly every packet is in it twice ({again} of {once} that were looked for came again, later than a copy does): it was captured at two places, \
                 which are merged into one interface, so that no time in it can be believed. Merge with an interface for each (`mergecap -I none`), or \
                 import the capture of one place"
            )
        })
    }
}

/// Packets that were looked for; fewer show nothing.
const LEAST_SIGHTINGS: u64 = 20;
/// The share of them that came again where two captures are merged.
const MERGED: f64 = 0.8;
