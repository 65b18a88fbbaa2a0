//! The kernel's own forwarding of IPv6, beside which a router does not start.

use crate::configs::{queue, routed};
use crate::own_addresses::ping_until;
use crate::row::{Row, Running, has, skips};
use crate::{said_twice, twice};
use fleetfoot_live::Format;

/// In IPv6 the setting of all interfaces decides; that of an interface alone forwards nothing, and with it off the kernel still forwards.
#[test]
fn a_kernel_that_forwards_ipv6_itself_is_refused_until_the_advice_is_followed() {
    if skips() || !has("ping") {
        return;
    }
    let row = Row::routed();
    let config = || routed(queue("codel", None), queue("codel", None), None, Format::Frames);
    let set =
        |setting: &'static str, value: &'static str| row.middle.set(&format!("ipv6/conf/{setting}"), value);
    let far = "fd00:2::1";
    set("b0/forwarding", "1");
    set("b1/forwarding", "1");
    // These forward nothing.
    ping_until(&row.near, far, false);
    Running::try_start(&row, config())
        .expect("nothing leaves twice")
        .stop();
    set("all/forwarding", "1");
    set("b0/forwarding", "0");
    set("b1/forwarding", "0");
    ping_until(&row.near, far, true);
    let refused = || {
        Running::try_start(&row, config())
            .err()
            .expect("every packet would leave twice")
    };
    let error = refused();
    assert!(
        error.ends_with("set sysctl -w net.ipv6.conf.all.forwarding=0"),
        "{error}"
    );
    set("all/forwarding", "0");
    ping_until(&row.near, far, false);
    // Linux 6.17 or later.
    if row
        .middle
        .run(|| std::path::Path::new("/proc/sys/net/ipv6/conf/b0/force_forwarding").exists())
    {
        set("b0/force_forwarding", "1");
        let error = refused();
        assert!(
            error.ends_with("set sysctl -w net.ipv6.conf.b0.force_forwarding=0"),
            "{error}"
        );
        set("b0/force_forwarding", "0");
    }
    let running = Running::start(&row, config());
    assert_eq!(twice(&running), []);
    let by = Some(String::from("net.ipv6.conf.all.forwarding"));
    set("all/forwarding", "1");
    let both = [(String::from("b0"), by.clone()), (String::from("b1"), by)];
    assert_eq!(said_twice(&running, 2), both);
    set("all/forwarding", "0");
    let both = [(String::from("b0"), None), (String::from("b1"), None)];
    assert_eq!(said_twice(&running, 4)[2..], both);
    ping_until(&row.near, far, true);
    running.stop();
}
