//! `tenure run --once-per`: the same crontab on several machines.

mod support;

use serde_json::{Value, json};
use tenure::Token;
use tenure::clock::{BootClock, Clock, WallTime};
use tenure::record::{self, LastSuccess, Nonce, Record};
use tenure_store::StoreTime;

use support::{Did, Home, did, plant, refused};

fn run(home: &Home, options: &[&str], command: &[&str]) -> Did {
    home.tenure(&[&["run", "backup", "--no-wait"], options, &["--"], command].concat())
}

#[test]
fn the_second_run_in_a_period_is_skipped_with_words_or_by_its_exit_code_alone() {
    let home = Home::new("once-skip");
    run(&home, &["--once-per", "20h"], &["echo", "first"]).answered(0, "first\n");
    let skipped = run(&home, &["--once-per", "20h"], &["echo", "second"]);
    assert_eq!(skipped.out, "");
    refused(
        &skipped,
        75,
        &["lease backup on file://", "is not due", "so this one is skipped. Try again in 20h"],
    );
    let status = home.tenure(&["status", "backup", "--json"]).json();
    assert_eq!(status["last_success"]["token"], status["token"]);
    let began = status["last_success"]["began_at"].as_str().unwrap();
    let sentence = home.tenure(&["status", "backup"]).out;
    assert!(sentence.contains(&format!(", the last success began at {began}\n")), "{sentence}");
    let quiet = run(&home, &["--once-per", "20h", "--quiet"], &["echo", "second"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (75, "", ""));
    let chosen = run(&home, &["--once-per", "20h", "--conflict-exit-code", "0"], &["echo", "second"]);
    assert_eq!((chosen.code, chosen.out.as_str()), (0, ""));
    // It does not wait for its turn, which may be hours away.
    let patient = home.tenure(&["run", "backup", "--once-per", "20h", "--", "echo", "second"]);
    refused(&patient, 75, &["is not due"]);
    run(&home, &[], &["echo", "by hand"]).answered(0, "by hand\n");
    run(&home, &["--once-per", "1ms"], &["echo", "due"]).answered(0, "due\n");
}

#[test]
fn a_command_that_fails_counts_only_if_asked_and_one_that_cannot_be_started_never() {
    let home = Home::new("once-fail");
    assert_eq!(run(&home, &["--once-per", "20h"], &["false"]).code, 1);
    assert_eq!(run(&home, &["--once-per", "20h"], &["sh", "-c", "kill -9 $$"]).code, 137);
    assert_eq!(run(&home, &["--once-per", "20h", "--count-failures"], &["/no/such"]).code, 127);
    assert_eq!(run(&home, &["--once-per", "20h", "--count-failures"], &["false"]).code, 1);
    refused(&run(&home, &["--once-per", "20h"], &["true"]), 75, &["is not due"]);
    run(&home, &["--once-per", "0s"], &["echo", "always"]).answered(0, "always\n");
    let lines = run(&home, &["--once-per", "20h", "--json"], &["true"]).err;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let skipped = events.iter().find(|event| event["event"] == "skipped").expect(&lines);
    let left = skipped["left_ms"].as_u64().unwrap();
    assert!((71_000_000..=72_000_000).contains(&left), "{skipped}");
    assert_eq!(skipped["name"], json!("backup"));
}

#[test]
fn a_command_that_was_asked_to_end_does_not_count_although_it_exits_with_zero() {
    let home = Home::new("once-asked");
    let script = "tenure run backup --once-per 20h -- sh -c 'trap \"exit 0\" TERM; touch ready; sleep 20 & wait' & job=$!
        until [ -e ready ]; do sleep 0.02; done
        kill -TERM $job; wait $job";
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let mut command = std::process::Command::new("sh");
    command.env_clear().env("HOME", &home.0).env("XDG_RUNTIME_DIR", &home.0).current_dir(&home.0);
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    assert_eq!(did(command.args(["-c", script])).code, 0);
    run(&home, &["--once-per", "20h"], &["echo", "again"]).answered(0, "again\n");
}

#[test]
fn a_success_that_the_record_cannot_take_is_reported() {
    let home = Home::new("once-deleted");
    let entry = home.leases().join("backup.entry");
    let answer = run(&home, &["--once-per", "20h"], &["rm", entry.to_str().unwrap()]);
    assert!(answer.err.contains("was not recorded in lease backup") || answer.code == 76, "{answer:?}");
}

#[test]
fn a_success_that_lies_in_the_future_is_a_wrong_clock_and_no_reason_to_skip() {
    let home = Home::new("once-future");
    let now = BootClock::new().wall();
    let began = StoreTime::from_micros(now.as_millis() * 1_000 + 48 * 3_600_000_000);
    let token = Token::new(7).unwrap();
    let mut vacant = Record::new(token, Nonce::from_bits(1), WallTime::default());
    vacant.last_success = Some(LastSuccess { token, began });
    plant(&home, "backup", record::encode(&vacant).to_vec());
    let answer = run(&home, &["--once-per", "20h"], &["echo", "hi"]);
    refused(&answer, 78, &["began 1d23h in the future", "--once-per 0s"]);
    run(&home, &["--once-per", "0s"], &["echo", "hi"]).answered(0, "hi\n");
    refused(&run(&home, &["--once-per", "20h"], &["echo", "hi"]), 75, &["is not due"]);
}

#[test]
fn wrong_options_are_refused() {
    let home = Home::new("once-usage");
    refused(&run(&home, &["--once-per", "20"], &["true"]), 64, &["--once-per", "it has no unit"]);
    refused(&run(&home, &["--count-failures"], &["true"]), 64, &["--once-per"]);
    refused(&run(&home, &["--once-per", "1h", "--slots", "2"], &["true"]), 64, &["--slots"]);
}
