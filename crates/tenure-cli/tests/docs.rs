//! The documentation shows what happens: a test executes every command line on its pages, and compares the output with
//! the page.
//!
//! A page is one shell, which starts in an empty home. In a `console` block, lines that begin with `$ ` are commands,
//! and `> ` continues them. The other lines are their output, standard output and standard error together.
//! `docs_support/pattern.rs` lists the placeholders. `UPDATE_DOCS=1` writes the actual output into the pages: read the
//! diff before you keep it.

mod docs_support;
mod run_support;

use std::path::Path;

use docs_support::{configs, links, page, pattern::Known, session};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[track_caller]
fn nothing_is_wrong(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// `DOCS_PAGE=start` selects one page.
fn is_wanted(page: &page::Page) -> bool {
    std::env::var("DOCS_PAGE").map_or(true, |name| page.name.contains(&name))
}

#[test]
fn every_command_line_of_the_documentation_prints_what_the_page_shows() {
    let pages = page::pages(root());
    assert!(pages.iter().map(|page| page.steps().len()).sum::<usize>() > 10, "the pages were not found");
    nothing_is_wrong(session::execute(pages.iter().filter(|page| is_wanted(page))));
}

#[test]
fn every_other_block_of_the_documentation_is_a_valid_file() {
    nothing_is_wrong(page::pages(root()).iter().flat_map(configs::wrong).collect());
}

#[test]
fn every_link_of_the_documentation_has_a_target() {
    nothing_is_wrong(page::all(root()).iter().flat_map(|page| links::broken(root(), page)).collect());
}

#[test]
fn every_page_can_be_found_from_the_index() {
    let docs = root().join("docs");
    let missing = |page: &page::Page| {
        // Pages in a directory `x` are parts of the page `x.md` beside it.
        let whole = page.path.parent().unwrap().with_extension("md");
        let index = if whole.is_file() { whole } else { docs.join("README.md") };
        let link = page.path.strip_prefix(index.parent().unwrap()).unwrap().display();
        let text = std::fs::read_to_string(&index).unwrap();
        let is_linked = [format!("({link})"), format!("({link}#")].iter().any(|link| text.contains(link));
        (page.path != index && !is_linked).then(|| format!("{}: no link to {link}", index.display()))
    };
    let pages = page::pages(root());
    nothing_is_wrong(pages.iter().filter(|page| page.path.starts_with(&docs)).filter_map(missing).collect());
}

#[test]
fn placeholders_match_only_words_of_their_kind() {
    let known = Known::default();
    for (written, actual, fits) in [
        ("hi", "hi", true),
        ("hi", "hi there", false),
        ("hi [..]", "hi there", true),
        ("a [..] c", "a b d", false),
        ("token 1794735088779000", "token 1894735088779007", true),
        ("token 1794735088779000", "token 1894735088779", false),
        (
            "token 1794735088779000, token 1794735088779000",
            "token 1894735088779007, token 1894735088779008",
            false,
        ),
        ("1794735088779000 1794735088779001", "1894735088779008 1894735088779007", false),
        ("1794735088779000 1794735088779001", "1894735088779007 1894735088779099", true),
        ("at most 15s left", "at most 1m2s left", true),
        ("at most 15s left", "at most long left", false),
        ("a ttl of 15s", "a ttl of 16s", false),
        ("web-1:4711", "web-1:12", true),
        ("web-1:4711", "web-2:4711", false),
        ("a  15s  b", "a     619ms   b", true),
        ("  2.51s  b", "  12.04s  b", true),
        ("  2.51s  b", "  12.04  b", false),
        ("a ttl of 2.5s", "a ttl of 3.5s", false),
        ("a  b", "a b", false),
        ("at 2026-11-15T05:30:00.250Z", "at 2027-01-02T03:04:05.678Z", true),
    ] {
        assert_eq!(known.after_line(written, actual).is_some(), fits, "{written:?} and {actual:?}");
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(known.after(&lines("a\n...\nd"), &lines("a\nb\nc\nd")).is_some());
    assert!(known.after(&lines("a\n...\nd"), &lines("a\nb\nc")).is_none());
    assert!(known.after(&lines("a"), &lines("a\nb")).is_none());
}
