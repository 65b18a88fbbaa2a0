//! A capture of which nothing can be made.

use super::{Capture, Over, Stop};

impl<F: FnMut(Over)> Capture<F> {
    /// Why nothing can be made of it.
    pub(super) fn nothing(&self, stop: &Stop) -> String {
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
}
