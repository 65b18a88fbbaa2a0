//! `kind = "access-tree"`: hosts behind DSLAMs, DSLAMs behind edge routers, edge routers at a ring of core routers.
//!
//! **Source.** docs/design/favourtail.md#backbone: an xDSL backbone in which every router but those of the core has two DSLAMs with three hosts
//! each. **Deviations.** The slides do not show the core; a ring of four with one chord and two edge routers each is assumed.

use super::document::Value;
use super::error::Error;
use super::link::Plan;
use super::network::Builder;
use super::read::Section;
use fleetfoot_sim::spec::NodeId;

/// Most hosts.
const MOST_HOSTS: u64 = 100_000;

impl Builder {
    pub(super) fn access_tree(&mut self, section: &Section) -> Result<(), Error> {
        let number = |key| section.need(key)?.integer();
        let (cores, chords) = (number("cores")?, number("chords")?);
        let (edges, dslams, hosts) = (number("edges")?, number("dslams")?, number("hosts")?);
        if cores * edges * dslams * hosts > MOST_HOSTS {
            return Err(section
                .need("hosts")?
                .fail(format!("more than {MOST_HOSTS} hosts do not fit")));
        }
        let most = if cores < 4 { 0 } else { cores / 2 };
        let field = section.need("chords")?;
        // A single router and a triangle have no links across; the default is for the ring of four.
        let chords = if field.given { chords } else { chords.min(most) };
        if chords > most {
            return Err(field.fail(format!("a ring of {cores} routers has room for {most} chords")));
        }
        let ring: Vec<NodeId> = (0..cores)
            .map(|core| self.node(format!("core-{core}"), false))
            .collect();
        let mut between: Vec<(u64, u64)> = match cores {
            1 => Vec::new(),
            2 => vec![(0, 1)],
            _ => (0..cores).map(|core| (core, (core + 1) % cores)).collect(),
        };
        between.extend((0..chords).map(|chord| (chord, chord + cores / 2)));
        for (a, b) in between {
            self.branch(
                section,
                "core",
                &format!("core-{a}-{b}"),
                ring[a as usize],
                ring[b as usize],
            )?;
        }
        for edge in 0..cores * edges {
            let router = self.node(format!("edge-{edge}"), false);
            let core = ring[(edge / edges) as usize];
            self.branch(section, "edge", &format!("uplink-{edge}"), router, core)?;
            for dslam in 0..dslams {
                let shelf = self.node(format!("dslam-{edge}-{dslam}"), false);
                self.branch(section, "dslam", &format!("line-{edge}-{dslam}"), shelf, router)?;
                for host in 0..hosts {
                    let name = format!("{edge}-{dslam}-{host}");
                    let id = self.node(format!("host-{name}"), true);
                    for group in [String::from("hosts"), format!("site-{edge}")] {
                        self.network.groups.entry(group).or_default().push(id);
                    }
                    self.branch(section, "access", &format!("access-{name}"), id, shelf)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a link: the table of its level over `bottleneck`, and an entry of its own over both.
    fn branch(
        &mut self,
        section: &Section,
        level: &'static str,
        name: &str,
        from: NodeId,
        to: NodeId,
    ) -> Result<(), Error> {
        let mut base = section.need("bottleneck")?.node;
        let over = section.need(level)?.node;
        if let (Value::Table(table), Value::Table(over)) = (&mut base.value, over.value) {
            table.merge(over);
        }
        let own = self.own(name, &base, "network.bottleneck", false)?;
        let plan = match own {
            Some(plan) => plan,
            None => Plan::read(&base, "network.bottleneck", false)?,
        };
        self.link(name, from, to, &plan);
        Ok(())
    }
}
