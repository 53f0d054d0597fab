//! Several real processes on one database, killed and stopped in the middle of their transactions.
#![allow(clippy::disallowed_methods, reason = "the processes run in real time")]

mod support;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rusqlite::Transaction;
use support::{Database, Journal, connect, ledger, token};
use tenure_fence::FenceError;
use tenure_testkit::{quota, sleep_ms};

/// The variables that make this test binary a writer.
const PATH: &str = "TENURE_SQLITE_TEST_PATH";
const SEED: &str = "TENURE_SQLITE_TEST_SEED";
const COUNT: &str = "TENURE_SQLITE_TEST_COUNT";

/// Rows of one transaction.
const ROWS: u64 = 3;

/// A writer in a process of its own, which is killed when this is dropped.
struct Writing(Child, BufReader<ChildStdout>);

impl Writing {
    fn start(database: &Database, seed: u64, count: u64) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "writer_of_the_tests", "--nocapture"]);
        command.env(PATH, database.path()).env(SEED, seed.to_string()).env(COUNT, count.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self(child, output)
    }

    /// The tokens and outcomes that it prints, until it ends.
    fn lines(&mut self) -> impl Iterator<Item = (String, u64)> {
        (&mut self.1).lines().map_while(Result::ok).filter_map(|line| {
            let (outcome, token) = line.split_once(' ')?;
            ["admitted", "refused"].contains(&outcome).then_some((outcome.to_owned(), token.parse().ok()?))
        })
    }

    fn signal(&self, name: &str) {
        let number = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &number]).status().unwrap().success());
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One writer: each transaction has a token near the mark, and a few rows.
#[test]
fn writer_of_the_tests() {
    let Some(path) = env::var_os(PATH) else { return };
    let number = |name: &str| env::var(name).unwrap().parse::<u64>().unwrap();
    let (seed, count) = (number(SEED), number(COUNT));
    let mut chance = fastrand::Rng::with_seed(seed);
    let (mut connection, fence) = (connect(path.into()), ledger().with_guarded_tables());
    let mut output = std::io::stdout().lock();
    for place in 0..count {
        let mark = fence.mark(&connection).unwrap().map_or(0, |mark| mark.token().get());
        let offered = (mark + chance.u64(0..4)).saturating_sub(2).max(1);
        let insert = |transaction: &Transaction<'_>| {
            for row in 0..ROWS {
                let number = (seed << 32) + place * ROWS + row;
                let row = (offered as i64, number as i64);
                transaction.execute("INSERT INTO entries VALUES (?1, ?2)", row)?;
            }
            Ok(())
        };
        let line = match fence.transaction(&mut connection, &token(offered), insert) {
            Ok(()) => "admitted",
            Err(FenceError::Stale { .. }) => "refused",
            Err(error) => panic!("{error}"),
        };
        writeln!(output, "{line} {offered}").unwrap();
    }
}

/// Checks that no token goes back in the order of the commits, and that every transaction is complete.
fn is_in_order(database: &Database, told: &[(String, u64)]) -> u64 {
    let entries = database.entries();
    assert!(
        entries.is_sorted_by_key(|(token, _)| *token),
        "a smaller token was committed after a greater one"
    );
    assert_eq!(entries.len() as u64 % ROWS, 0, "half a transaction");
    let connection = database.connect();
    let mark = ledger().mark(&connection).unwrap().map_or(0, |mark| mark.token().get());
    assert_eq!(mark, entries.last().map_or(0, |(token, _)| *token), "mark and rows commit together");
    let admitted = told.iter().filter(|(outcome, _)| outcome == "admitted").count() as u64;
    assert!(entries.len() as u64 / ROWS >= admitted, "an acknowledged transaction is missing");
    let check: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    told.len() as u64 - admitted
}

fn start(journal: Journal) -> Database {
    let database = Database::new(journal);
    ledger().guard(&database.connect(), "entries").unwrap();
    database
}

#[test]
fn writers_that_are_killed_in_the_middle_leave_whole_transactions_and_their_mark() {
    for journal in Journal::ALL {
        let database = start(journal);
        let mut chance = fastrand::Rng::with_seed(7);
        let mut told = Vec::new();
        for round in 1..=quota(15, 200) {
            let mut writers = [1, 2].map(|number| Writing::start(&database, round * 2 + number, 1_000_000));
            // It writes already. Somewhere in its transactions it is killed.
            told.extend(writers[0].lines().take(20));
            std::thread::sleep(Duration::from_micros(chance.u64(0..3_000)));
            writers[0].signal("-KILL");
            told.extend(writers[1].lines().take(20));
            for mut writer in writers {
                writer.signal("-KILL");
                told.extend(writer.lines());
            }
            is_in_order(&database, &told);
        }
        println!(
            "{journal:?}: {} answers, {} transactions",
            told.len(),
            database.entries().len() as u64 / ROWS
        );
    }
}

#[test]
fn writers_in_four_processes_never_go_back_also_if_one_is_stopped_for_a_while() {
    for journal in Journal::ALL {
        let database = start(journal);
        let count = quota(2_500, 25_000);
        let mut writers = [1, 2, 3, 4].map(|number| Writing::start(&database, number, count));
        for _ in 0..10 {
            writers[0].signal("-STOP");
            sleep_ms(20);
            writers[0].signal("-CONT");
            sleep_ms(20);
        }
        let told: Vec<_> = writers.iter_mut().flat_map(|writer| writer.lines().collect::<Vec<_>>()).collect();
        let refused = is_in_order(&database, &told);
        assert_eq!(told.len() as u64, count * 4);
        assert!(refused > 100, "{refused}");
        println!("{journal:?}: {} admitted, {refused} refused", told.len() as u64 - refused);
    }
}
