//! Ceph RGW: atomic conditions, but only for ETags without their quotes, and a 500 for some requests that lose a race.
//!
//! It is a gateway to a cluster of one monitor and one in-memory object store. Only the gateway is stopped and started
//! again: the cluster lives as long as the server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use super::recipe::{ACCESS_KEY, REGION, Recipe, SECRET_KEY};
use crate::home::Home;
use crate::http;
use crate::port::Port;
use crate::process::Process;
use crate::ran::ran;
use crate::sign::Signer;
use crate::wait::wait_for;

#[derive(Debug)]
pub(crate) struct CephRgw;

impl Recipe for CephRgw {
    /// One for S3, one for the monitor; the other parts choose theirs.
    fn ports(&self) -> usize {
        2
    }

    fn backing(&self, home: &Home, ports: &[Port]) -> io::Result<Vec<Process>> {
        let (conf, cluster) = (settings(home, ports)?, random_uuid()?);
        let monitor = format!("[v1:{}]", ports[1].address());
        let map = home.path().join("monmap");
        ran(Command::new("monmaptool")
            .args(["--create", "--clobber", "--fsid", &cluster, "--addv", "a", &monitor])
            .arg(&map))?;
        ran(tool("ceph-mon", &conf).args(["--mkfs", "-i", "a", "--fsid", &cluster, "--monmap"]).arg(&map))?;
        let monitor = Process::start(tool("ceph-mon", &conf).args(["-f", "-i", "a"]), home)?;
        until("the monitor", || ran(tool("ceph", &conf).args(["--connect-timeout", "5", "-s"])).ok())?;

        let id = random_uuid()?;
        // A monitor may deny everything for a moment after its start.
        let number = until("the monitor", || ran(tool("ceph", &conf).args(["osd", "new", &id])).ok())?;
        fs::write(home.path().join("osd/fsid"), format!("{id}\n"))?;
        let store = || {
            let mut store = tool("ceph-osd", &conf);
            store.args(["-i", number.trim()]);
            store
        };
        ran(store().args(["--mkfs", "--osd-uuid", &id]))?;
        let start = || Process::start(store().arg("-f"), home);
        let mut process = start()?;
        until("the store of objects", || {
            // Sometimes it speaks before it has learned its cluster, gets "wrong fsid", and exits.
            if process.has_ended() {
                std::mem::replace(&mut process, start().ok()?).kill();
            }
            ran(tool("ceph", &conf).args(["osd", "stat"])).ok().filter(|stat| stat.contains("1 up"))
        })?;

        let user = ["user", "create", "--uid=tenure", "--display-name=tenure"];
        let keys = [format!("--access-key={ACCESS_KEY}"), format!("--secret-key={SECRET_KEY}")];
        ran(tool("radosgw-admin", &conf).args(["-n", "client.rgw"]).args(user).args(keys))?;
        Ok(vec![monitor, process])
    }

    fn command(&self, program: &Path, home: &Home, _: &[Port]) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.args(["-f", "-n", "client.rgw", "--conf"]).arg(home.path().join(SETTINGS));
        Ok(command)
    }

    /// An anonymous client may list nothing, and gets an answer that says so.
    fn is_ready(&self, ports: &[Port]) -> bool {
        http::status(ports[0].address(), "GET", "/", "").is_ok_and(|status| status < 500)
    }

    fn create_bucket(&self, _: &Home, ports: &[Port], name: &str) -> io::Result<()> {
        let (address, path) = (ports[0].address(), format!("/{name}"));
        let signer = Signer { access_key: ACCESS_KEY, secret_key: SECRET_KEY, region: REGION, service: "s3" };
        let headers = signer.sign(&address.to_string(), ("PUT", &path), &[], b"");
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match http::ask(address, ("PUT", &path), &headers, "")? {
            (200, _) => Ok(()),
            (status, answer) => Err(io::Error::other(format!("it answered {status}: {answer}"))),
        }
    }
}

/// Writes the settings of all parts: one copy of everything, no authentication between them, and loopback addresses
/// only.
fn settings(home: &Home, ports: &[Port]) -> io::Result<PathBuf> {
    for directory in ["mon", "osd", "run"] {
        fs::create_dir_all(home.path().join(directory))?;
    }
    let (home, path) = (home.path().display(), home.path().join(SETTINGS));
    let (gateway, monitor) = (ports[0].address(), ports[1].address());
    let text = format!(
        "[global]
mon host = v1:{monitor}
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
ms bind ipv6 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
public network = 127.0.0.0/8
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
run dir = {home}/run
admin socket = {home}/run/$name.asok
log file = {home}/$name.log
pid file = {home}/run/$name.pid
[mon]
mon data = {home}/mon
mon data avail crit = 1
mon data avail warn = 2
[osd]
osd data = {home}/osd
osd objectstore = memstore
memstore device bytes = 1073741824
[client.rgw]
rgw frontends = beast endpoint={gateway}
rgw thread pool size = 64
rgw dns name = localhost
debug rgw = 0
"
    );
    fs::write(&path, text)?;
    Ok(path)
}

fn tool(name: &str, conf: &Path) -> Command {
    let mut command = Command::new(name);
    command.arg("--conf").arg(conf);
    command
}

fn until<T>(what: &str, come: impl FnMut() -> Option<T>) -> io::Result<T> {
    wait_for(PATIENCE, Duration::from_millis(200), come)
        .ok_or_else(|| io::Error::other(format!("{what} was not there after {} s", PATIENCE.as_secs())))
}

fn random_uuid() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

const SETTINGS: &str = "ceph.conf";

/// Longest time for a part of the cluster to start, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
