//! The page of `fleetfoot serve`: that of `make explorer` without an engine in it.

/// Made by `web/explorer/build.sh`, and checked in, so that building the program needs no Node.
const PAGE: &str = include_str!("../assets/page.html");

/// Where the scenario stands that the page begins with.
const GIVEN: &str = "@GIVEN@";

/// The page, which begins with the scenario `given`, its name and its text; without one with the home line.
pub fn page(given: Option<(&str, &str)>) -> String {
    let given = given.map(|(name, toml)| serde_json::json!({ "name": name, "toml": toml }));
    // `<` never stands in it, so nothing in it can end the element.
    let given = serde_json::Value::from(given).to_string().replace('<', "\\u003c");
    PAGE.replacen(GIVEN, &given, 1)
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn a_scenario_cannot_end_its_element() {
        let page = page(Some(("a.toml", "title = \"</script><script>alert(1)</script>\"")));
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"));
        assert!(!page.contains("@GIVEN@"));
        assert!(super::page(None).contains("id=\"given\">null</script>"));
    }
}
