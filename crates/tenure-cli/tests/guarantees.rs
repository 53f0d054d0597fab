//! `tenure store guarantees`: the guarantees of a store, in words.

mod support;

use serde_json::json;
use support::Home;

#[test]
fn each_guarantee_is_a_row_with_its_meaning() {
    let home = Home::new("guarantees");
    drop(home.store());
    let did = home.tenure(&["store", "guarantees"]);
    assert_eq!((did.code, did.err), (0, format!("store: {}, the default\n", home.url())));
    let lines: Vec<&str> = did.out.lines().collect();
    assert_eq!(lines.len(), 14, "{}", did.out);
    for words in [
        &["atomic create", "  yes  "][..],
        &["reach", "one machine", "not beyond it"],
        &["clock", "token floors and ages", "whether a lease has run out"],
        &["witness", "  yes  ", "free at once"],
        &["removal", "tenure forget"],
        &["largest value", "1 MiB"],
    ] {
        assert!(
            lines.iter().any(|line| words.iter().all(|word| line.contains(word))),
            "{words:?}: {}",
            did.out
        );
    }
    let answer = home.tenure(&["store", "guarantees", "--json"]).json();
    assert_eq!(
        (&answer["store"], &answer["there"], &answer["missing"]),
        (&json!(home.url()), &json!(true), &json!([]))
    );
    let rows = answer["guarantees"].as_array().unwrap();
    let value = |name: &str| &rows.iter().find(|row| row["name"] == name).unwrap()["value"];
    assert_eq!((value("atomic_replace"), value("reach")), (&json!(true), &json!("machine")));
    assert_eq!(value("ttl_max_ms"), &json!(null), "there is no limit");
    assert_eq!((value("write_interval_ms"), value("value_max_bytes")), (&json!(0), &json!(1 << 20)));
}

#[test]
fn the_guarantees_of_a_future_store_are_shown_without_creating_it() {
    let home = Home::new("foretold");
    let other = home.0.join("srv/leases");
    let url = format!("file://{}", other.display());
    let did = home.tenure(&["store", "guarantees", &url]);
    assert_eq!(did.code, 0);
    assert_eq!(did.err, format!("{url} does not exist yet: this is what it would guarantee\n"));
    assert!(did.out.contains("one machine"), "{}", did.out);
    let answer = home.tenure(&["store", "guarantees", "--json", &url]).json();
    assert_eq!((&answer["store"], &answer["there"]), (&json!(url), &json!(false)));
    assert_eq!(std::fs::read_dir(&home.0).unwrap().count(), 0, "not even a directory");
}

#[test]
fn an_invalid_store_fails_as_with_other_commands() {
    let home = Home::new("no-store");
    home.tenure(&["store", "guarantees", "/srv/leases"])
        .failed(64, "URL: \"/srv/leases\" is a path, but a store needs a URL: write file:///srv/leases");
    let open = home.0.join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let did = home.tenure(&["store", "guarantees", &format!("file://{}", open.join("x").display())]);
    assert_eq!((did.code, did.out.as_str()), (77, ""), "{}", did.err);
    assert!(did.err.contains("not safe for leases"), "{}", did.err);
}
