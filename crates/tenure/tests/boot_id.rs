//! A boot id that is empty or garbled, as a container may mount over the kernel's, costs the witness but no lease.

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tenure_store::Reach;

use support::World;

const TTL: Duration = Duration::from_secs(15);

/// The test below also runs this test, each time with another boot id.
#[tokio::test]
async fn leases_are_held_and_renewed_whatever_the_boot_id_is() {
    let world = World::built(|builder| builder.reach(Reach::Network));
    let a = world.process("a").await;
    let one = a.lease("one").unwrap().ttl(TTL).acquire().await.unwrap();
    let two = a.lease("two").unwrap().ttl(TTL).acquire().await.unwrap();
    println!("witness {}", one.witness(tenure::WitnessPart::Tree).unwrap().is_some());
    world.pass(3 * TTL).await;
    one.check().unwrap();
    two.check().unwrap();
    one.release().await.unwrap();
    two.release().await.unwrap();
}

#[test]
fn an_invalid_boot_id_costs_the_witness_and_no_lease() {
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("boot-id-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("boot_id");
    let long = "b".repeat(100);
    let nil = "00000000-0000-0000-0000-000000000000\n";
    let good = "5d2cf2ad-62e7-4a34-bd4e-9a1a0f4f6a3c\n";
    let ids = ["", "\n", "two words\n", ".hidden\n", "no\0thing", "unset", nil, &long, good];
    for id in ids {
        std::fs::write(&file, id).unwrap();
        let mount = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
        let test = "leases_are_held_and_renewed_whatever_the_boot_id_is";
        let mut unshare = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        let output = unshare
            .args(["--mount", "sh", "-c", mount])
            .arg(&file)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env("XDG_RUNTIME_DIR", &directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let trouble = String::from_utf8_lossy(&output.stderr);
        if !said.contains("running 1 test") {
            tenure_testkit::skipped(&format!("no mount namespaces here: {trouble}"));
            break;
        }
        assert!(output.status.success(), "{id:?}: {said}{trouble}");
        assert!(said.contains(&format!("witness {}", id == good)), "{id:?}: {said}{trouble}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
