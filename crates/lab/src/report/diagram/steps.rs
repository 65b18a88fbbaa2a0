//! The diagram as data, for a page that draws it over time.

use super::{Arrow, Diagram};
use fleetfoot_core::time::Instant;
use serde_json::{Value, json};

impl Diagram {
    /// `{begin_s, segments, arrows: [{sent_s, arrived_s, dropped_s, back, what, label}], timers: [{at_s, what}]}`. Times are from the
    /// first segment on; `arrived_s` is `null` where a segment did not arrive, `segments` counts also those beyond the arrows.
    pub fn to_json(&self) -> Value {
        let begin = self.arrows.first().map_or(Instant::ZERO, |arrow| arrow.sent);
        let after = |at: Instant| at.since(begin).as_secs_f64();
        let arrow = |arrow: &Arrow| {
            json!({
                "sent_s": after(arrow.sent),
                "arrived_s": arrow.arrived.map(after),
                "dropped_s": arrow.dropped.map(|at| after(at.max(arrow.sent))),
                "back": arrow.back,
                "what": arrow.what.name(),
                "label": if arrow.back { self.acked(arrow) } else { self.sent(arrow) },
            })
        };
        let timer = |&(at, what): &(Instant, &str)| json!({ "at_s": after(at), "what": what });
        json!({
            "begin_s": begin.as_secs_f64(),
            "segments": self.segments,
            "arrows": self.arrows.iter().map(arrow).collect::<Vec<_>>(),
            "timers": self.timers.iter().map(timer).collect::<Vec<_>>(),
        })
    }
}
