//! Every valid key works, and all keys are distinct.

use tenure_store::Key;

use crate::check::{Clause, check};
use crate::stop::{CheckResult, Stop, ensure};
use crate::trial::Trial;

pub(crate) const CLAUSE: Clause = Clause {
    name: "keys",
    checks: &[
        check!("a key may lie below another, and both are there", below_another),
        check!("unusual keys hold what was written to them", unusual),
        check!("keys of the greatest length hold their own", longest),
        check!("keys that look alike are different keys", look_alikes),
    ],
};

/// On a file system `a` would be a file, and `a/b` would need it to be a directory.
async fn below_another(trial: &Trial<'_>) -> CheckResult {
    independent(trial, ["a/b", "a", "a/b/c", "c/d/e", "c"].map(|name| trial.key(name)).into()).await
}

async fn unusual(trial: &Trial<'_>) -> CheckResult {
    let names = [
        "Ünïcødé/键/🔑",
        "with space",
        " leading and trailing ",
        "100%",
        "%2e%2e",
        "..x",
        "...",
        ".hidden",
        "a.lock",
        "a.tmp",
        "a.lock/b.tmp",
        "~",
        "#1",
        "what?",
        "a&b=c",
        "a+b",
        "back\\slash",
        "'quoted'",
        "\"quoted\"",
        "; drop table leases; --",
        "$(echo)",
        "*",
        ">",
        "{braces}",
        "[brackets]",
        "-dash",
        "con",
        "nul.",
        "null",
        "_",
        ":",
        "a:b",
        "a|b",
        "\u{202e}right to left",
    ];
    independent(trial, names.map(|name| trial.key(name)).into()).await
}

/// A file system accepts 255 bytes for a name. With each byte written as `%xx`, fewer than 200 bytes of a key fit.
async fn longest(trial: &Trial<'_>) -> CheckResult {
    let longest = trial.sizes.longest_key;
    let room = longest - trial.scope().len() - 1;
    let deep = "d/".repeat(room / 2 - 1);
    let names = [
        "x".repeat(room),
        format!("{}y", "x".repeat(room - 1)),
        format!("{}{}", "é".repeat(room / 2), "x".repeat(room % 2)),
        format!("{deep}{}", "e".repeat(room - deep.len())),
    ];
    let mut keys: Vec<Key> = names.iter().map(|name| trial.key(name)).collect();
    // One segment of the full length, which can therefore not lie below the others.
    let whole = trial.scope().replace('/', "-");
    let whole = format!("{whole}{}", "z".repeat(longest - whole.len()));
    keys.push(Key::parse(&whole).expect("the suite's own names are keys"));
    independent(trial, keys).await
}

/// Names that some systems treat as equal: letter case on macOS, Windows and in the default collation of MySQL;
/// composed and decomposed letters on macOS. A gateway that decodes twice confuses an escape with its character, and a
/// trimming column ignores white space.
async fn look_alikes(trial: &Trial<'_>) -> CheckResult {
    let names = [
        "key", "Key", "KEY", "é", "e\u{301}", "É", "ß", "ss", "%41", "A", "%2541", "a b", "a+b", "a%20b",
        "a/b", "a%2Fb", "a%2fb", "a.b", "a_b", "a-b", "a\\b", "key ", " key", "key.", "1", "01", "1.0",
        "\u{ff21}",
    ];
    independent(trial, names.map(|name| trial.key(name)).into()).await
}

/// Creates each key, then replaces each, and verifies that each still has its own value.
async fn independent(trial: &Trial<'_>, keys: Vec<Key>) -> CheckResult {
    let mut created = Vec::new();
    for key in &keys {
        let value = trial.value("first");
        let version = trial.create(key, &value).await.map_err(|stop| about(key, stop))?;
        created.push((value, version));
    }
    let mut replaced = Vec::new();
    for (key, (value, version)) in keys.iter().zip(&created) {
        trial.holds(key, value, version).await?;
        let value = trial.value("second");
        let next = trial.replace(key, &value, version).await.map_err(|stop| about(key, stop))?;
        replaced.push((value, next));
    }
    for (key, (value, version)) in keys.iter().zip(&replaced) {
        trial.holds(key, value, version).await?;
    }
    let mut names: Vec<&str> = keys.iter().map(Key::as_str).collect();
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == keys.len(), "the suite's own keys are not all different");
    Ok(())
}

/// Adds the key to the error.
fn about(key: &Key, stop: Stop) -> Stop {
    match stop {
        Stop::Failed(why) => Stop::Failed(format!("with the key {:?}: {why}", key.as_str())),
        skipped @ Stop::Skipped(_) => skipped,
    }
}
