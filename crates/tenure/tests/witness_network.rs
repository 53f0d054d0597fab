//! The witness of a networked store: it is on this machine, and only this machine uses it. With real processes.

mod file_support;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tenure::{Coordinator, ErrorKind};

use file_support::{DIRECTORY, Puppet, Scratch, shell};
use support::tcp::{TcpServer, TcpStore};

/// So long that no contender gets a lease here by waiting until it runs out.
const TTL: Duration = Duration::from_secs(600);

/// Time limit of a contender that gets the lease at once, or never. The next poll is far away.
const LONG_ENOUGH: Duration = Duration::from_secs(20);

/// A process that takes leases on the store at this address.
#[test]
#[ignore = "a process of other tests"]
fn puppet() {
    let Ok(address) = std::env::var(DIRECTORY) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connect = move || TcpStore::connect(address.parse().unwrap());
    let coordinator = runtime.block_on(Coordinator::builder().connect_with(connect)).unwrap();
    println!("> ready {}", std::process::id());
    let mut leases = Vec::new();
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let request = coordinator.lease("k").unwrap().ttl(TTL);
        let wanted = match order.as_str() {
            "acquire" => request.wait(LONG_ENOUGH).acquire(),
            "try" => request.wait(Duration::ZERO).acquire(),
            "unwitnessed" => request.without_witness().acquire(),
            "release" => {
                leases.clear();
                runtime.block_on(coordinator.shutdown()).unwrap();
                println!("> released");
                continue;
            }
            _ => panic!("{order}"),
        };
        match runtime.block_on(wanted) {
            Ok(lease) => {
                leases.push(lease);
                println!("> granted");
            }
            Err(error) if error.kind() == ErrorKind::Held => println!("> held"),
            Err(error) => println!("> {error}"),
        }
    }
    std::mem::forget(leases);
}

/// A machine: a remote store, and directories for witnesses. Processes with the same directory share a machine.
struct Machine {
    server: TcpServer,
    scratch: Scratch,
}

impl Machine {
    fn new(name: &str) -> Self {
        Self { server: TcpServer::start(), scratch: Scratch::new(name) }
    }

    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.scratch.0.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// A process with its witnesses in this directory.
    fn process(&self, directory: &str) -> Puppet {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("XDG_RUNTIME_DIR", self.directory(directory));
        Puppet::start_with(command, Path::new(&self.server.address().to_string()))
    }

    fn witnesses(&self, directory: &str) -> usize {
        std::fs::read_dir(self.directory(directory).join("tenure")).map_or(0, Iterator::count)
    }
}

#[test]
fn a_killed_holder_is_replaced_at_once_on_its_machine_and_nowhere_else() {
    let machine = Machine::new("network-killed");
    let mut holder = machine.process("run");
    assert_eq!(holder.ask("acquire"), "granted");
    assert_eq!(machine.witnesses("run"), 1);
    let (mut same, mut other) = (machine.process("run"), machine.process("elsewhere"));
    assert_eq!(same.ask("try"), "held");
    holder.kill();
    assert_eq!(other.ask("try"), "held", "it has not the file, and knows nothing");
    assert_eq!(same.ask("acquire"), "granted");
    assert_eq!(same.ask("release"), "released");
    assert_eq!(machine.witnesses("run"), 0);
}

#[test]
fn a_waiting_contender_learns_of_a_death_at_once() {
    let machine = Machine::new("network-waits");
    let (mut holder, mut waiter) = (machine.process("run"), machine.process("run"));
    assert_eq!(holder.ask("acquire"), "granted");
    waiter.order("acquire");
    file_support::sleep_ms(500);
    holder.kill();
    assert_eq!(waiter.answer().as_deref(), Some("granted"));
}

#[test]
fn a_stopped_holder_and_one_without_a_witness_are_not_mistaken_for_dead() {
    let machine = Machine::new("network-stopped");
    let (mut holder, mut other) = (machine.process("run"), machine.process("run"));
    assert_eq!(holder.ask("acquire"), "granted");
    assert!(shell(&format!("kill -STOP {}", holder.id())));
    assert_eq!(other.ask("try"), "held");
    holder.kill();
    assert_eq!(other.ask("acquire"), "granted");
    assert_eq!(other.ask("release"), "released");

    let (mut handle, mut other) = (machine.process("run"), machine.process("run"));
    assert_eq!(handle.ask("unwitnessed"), "granted");
    handle.kill();
    assert_eq!(other.ask("try"), "held");
    assert_eq!(machine.witnesses("run"), 0, "the denied contender left nothing");
}
