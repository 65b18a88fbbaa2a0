//! What people call links, and names that can stand in a table.

use super::{refusal, resolved};
use crate::scenario::{LinkInfo, Medium, Setting};

const DUMBBELL: &str = r#"
[network]
kind = "dumbbell"
pairs = 2
access = { delay = "1 ms", label = "the home network", medium = "ethernet" }

[network.bottleneck]
rate = "50 Mbit/s"
delay = "5 ms"
label = "the cable line"
medium = "docsis"
reverse = { rate = "10 Mbit/s", label = "the uplink" }

[[traffic]]
kind = "bulk"
"#;

fn info(resolved: &crate::scenario::Resolved, name: &str, forward: bool) -> LinkInfo {
    assert_eq!(resolved.links_info.len(), resolved.spec.links.len());
    let at = resolved
        .spec
        .links
        .iter()
        .position(|link| link.name == name && link.forward == forward);
    resolved.links_info[at.expect("the link is there")].clone()
}

fn line(label: Option<&str>, medium: Option<Medium>) -> LinkInfo {
    LinkInfo {
        label: label.map(str::to_owned),
        medium,
        rate_is_net: None,
    }
}

#[test]
fn links_have_the_labels_and_media_of_the_file() {
    let plain = resolved(DUMBBELL, &Setting::none());
    let cable = Some(Medium::Docsis);
    assert_eq!(
        info(&plain, "bottleneck", true),
        line(Some("the cable line"), cable)
    );
    // The way back has a name of its own and is of the same kind.
    assert_eq!(info(&plain, "bottleneck", false), line(Some("the uplink"), cable));
    let home = line(Some("the home network"), Some(Medium::Ethernet));
    assert_eq!(info(&plain, "access-1", true), home);
    assert_eq!(info(&plain, "access-1", false), home);
    // The links on the other side behave alike, but they are not the home network.
    assert_eq!(info(&plain, "egress-0", true), line(None, Some(Medium::Ethernet)));
}

#[test]
fn an_entry_of_a_link_names_it_and_a_run_does_not_depend_on_it() {
    let named = format!(
        "{DUMBBELL}\n[[link]]\nname = \"bottleneck\"\nlabel = \"the line\"\nmedium = \"gpon\"\n\
         [[link]]\nname = \"access-1\"\nlabel = \"the attic\"\n"
    );
    let plain = resolved(DUMBBELL, &Setting::none());
    let named = resolved(&named, &Setting::none());
    assert_eq!(
        info(&named, "bottleneck", true),
        line(Some("the line"), Some(Medium::Gpon))
    );
    assert_eq!(info(&named, "access-1", true).label.as_deref(), Some("the attic"));
    assert_eq!(format!("{:?}", plain.spec), format!("{:?}", named.spec));
    let graph = "[network]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nlabel = \"the beam\"\nmedium = \"satellite\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
    let graph = resolved(graph, &Setting::none());
    assert_eq!(
        info(&graph, "l", false),
        line(Some("the beam"), Some(Medium::Satellite))
    );
}

#[test]
fn every_medium_can_be_written_and_has_its_own_name() {
    for (medium, name) in Medium::ALL {
        let text = DUMBBELL.replace("docsis", name);
        let read = resolved(&text, &Setting::none());
        assert_eq!(info(&read, "bottleneck", true).medium, Some(medium));
        assert_eq!(medium.name(), name);
    }
}

#[test]
fn names_that_no_table_can_show_are_refused_where_they_stand() {
    let cases = [
        DUMBBELL.replace("the uplink", ""),
        DUMBBELL.replace("the uplink", "two\\nlines"),
        DUMBBELL.replace("\"docsis\"", "\"docsys\""),
        DUMBBELL.replace("kind = \"bulk\"", "kind = \"bulk\"\nname = \"\""),
        format!("title = \"\\u001b[31mred\"\n{DUMBBELL}"),
        format!("{DUMBBELL}[[variant]]\nname = \" \"\nset = {{ \"tcp.initial_window\" = 3 }}\n"),
        DUMBBELL.replace("kind = \"bulk\"", "kind = \"bulk\"\nname = \"=HYPERLINK(1)\""),
        format!("{DUMBBELL}[[variant]]\nname = \" @SUM(1)\"\nset = {{ \"tcp.initial_window\" = 3 }}\n"),
        format!("{DUMBBELL}[[link]]\nname = \"-1+1\"\ndelay = \"1 ms\"\n"),
        String::from(
            "[network]\nkind = \"graph\"\nhosts = [\"+a\", \"b\"]\n[[link]]\nname = \"l\"\nfrom = \"+a\"\nto = \"b\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"+a\"\nto = \"b\"\n",
        ),
        format!("{DUMBBELL}[[variant]]\nname = \"as described\"\nset = {{ \"tcp.initial_window\" = 3 }}\n"),
    ];
    let mut all = String::new();
    for text in &cases {
        all.push_str(&format!("{}\n\n", refusal(text)));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_rate_without_cells_is_said_of_lines_of_dsl_alone() {
    let adsl = DUMBBELL.replace("medium = \"docsis\"", "medium = \"adsl\"\nrate_is_net = true");
    let read = resolved(&adsl, &Setting::none());
    for forward in [true, false] {
        assert_eq!(
            info(&read, "bottleneck", forward).rate_is_net,
            Some(true),
            "{forward}"
        );
    }
    assert_eq!(info(&read, "access-0", true).rate_is_net, None);
    let runs = resolved(&DUMBBELL.replace("docsis", "adsl"), &Setting::none());
    assert_eq!(
        crate::identity::of(&read.spec),
        crate::identity::of(&runs.spec),
        "no run depends on it"
    );
    let cable = DUMBBELL.replace("medium = \"docsis\"", "medium = \"docsis\"\nrate_is_net = true");
    let error =
        crate::scenario::Scenario::parse("test.toml", &cable).and_then(|read| read.resolve(&Setting::none()));
    let error = error.expect_err("cable has no cells").message;
    assert!(
        error.starts_with("`rate_is_net` is for links with `medium = \"adsl\"`"),
        "{error}"
    );
}
