//! SeaweedFS: atomic conditions, and 412 where AWS answers 404.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use super::recipe::{ACCESS_KEY, Recipe, SECRET_KEY};
use crate::home::Home;
use crate::http;
use crate::port::Port;

#[derive(Debug)]
pub(crate) struct SeaweedFs;

impl Recipe for SeaweedFs {
    /// Each of its four parts has one port for HTTP and one for the other parts.
    fn ports(&self) -> usize {
        8
    }

    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command> {
        let settings = home.path().join("s3.json");
        fs::write(
            &settings,
            format!(
                r#"{{"identities":[{{"name":"tenure","credentials":[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}],"actions":["Admin","Read","Write","List","Tagging"]}}]}}"#
            ),
        )?;
        let mut command = Command::new(program);
        command.args(["-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]);
        for (flag, path) in [
            ("-dir", home.data()),
            ("-s3.config", settings),
            ("-s3.localSocket", home.path().join("s3.sock")),
            ("-filer.localSocket", home.path().join("filer.sock")),
        ] {
            command.arg(format!("{flag}={}", path.display()));
        }
        let flags = ["s3.port", "filer.port", "master.port", "volume.port"];
        let more = ["s3.port.grpc", "filer.port.grpc", "master.port.grpc", "volume.port.grpc"];
        for (flag, port) in flags.iter().chain(&more).zip(ports) {
            command.arg(format!("-{flag}={}", port.number()));
        }
        // No other listeners, no telemetry, little disk space, and no automatic creation of buckets.
        command.args(["-s3.port.iceberg=0", "-s3.port.lance=0", "-metricsPort=0", "-master.telemetry=false"]);
        command.args(["-master.volumeSizeLimitMB=64", "-volume.max=64", "-s3.autoCreateBucket=false"]);
        // It is alone, so it need not wait long for other candidates in an election, nor for remaining readers.
        command.args([
            "-master.electionTimeout=1s",
            "-master.heartbeatInterval=100ms",
            "-volume.preStopSeconds=0",
        ]);
        Ok(command)
    }

    /// S3 answers before writes are possible, so this writes something first.
    fn is_ready(&self, ports: &[Port]) -> bool {
        http::status(filer(ports), "PUT", "/ready", "ready").is_ok_and(|status| status == 201)
            && http::status(ports[0].address(), "GET", "/healthz", "").is_ok_and(|status| status == 200)
    }

    /// A directory below `/buckets` is a bucket.
    fn create_bucket(&self, _: &Home, ports: &[Port], name: &str) -> io::Result<()> {
        match http::status(filer(ports), "POST", &format!("/buckets/{name}/"), "")? {
            // Created, or existed already.
            201 | 409 => Ok(()),
            status => Err(io::Error::other(format!("its filer answered {status}"))),
        }
    }
}

fn filer(ports: &[Port]) -> std::net::SocketAddr {
    ports[1].address()
}
